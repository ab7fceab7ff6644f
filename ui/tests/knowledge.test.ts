import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { checkAccessible, checkFits, checkLooks, openLoggedIn, picture, startApp, stopBrowser, until, type App } from './helpers.ts'

const REFUNDS = '# Refunds\n\nYou can return a device within 30 days. Refunds are paid within 14 days to the card that was charged.\n'
const SHIPPING = '# Shipping\n\nParcels leave the warehouse on working days. Delivery to islands takes up to ten days.\n'

let app: App
before(async () => {
  app = await startApp()
})
after(async () => {
  await app.close()
  await stopBrowser()
})

interface Given { name: string; content: string | number[] }

/** Drops files on the zone as a file manager does. */
async function drop(page: Page, files: Given[]): Promise<void> {
  const transfer = await page.evaluateHandle((given) => {
    const transfer = new DataTransfer()
    for (const { name, content } of given) {
      const data = typeof content === 'string' ? content : new Uint8Array(content)
      transfer.items.add(new File([data], name))
    }
    return transfer
  }, files)
  const zone = page.getByRole('group', { name: 'Drop files or folders here' })
  await zone.dispatchEvent('dragover', { dataTransfer: transfer })
  await zone.dispatchEvent('drop', { dataTransfer: transfer })
}

async function createBase(name: string, files: Record<string, string | Uint8Array> = {}): Promise<string> {
  const made = await app.call('POST', '/api/v1/knowledge', { name })
  assert.equal(made.status, 201, 'create a knowledge base')
  const { id } = (await made.json()) as { id: string }
  for (const [file, content] of Object.entries(files)) {
    const form = new FormData()
    form.append('file', new Blob([content as BlobPart]), file)
    assert.equal((await app.call('POST', `/api/v1/knowledge/${id}/upload`, form)).status, 200, file)
  }
  await until(async () => {
    const { documents } = (await (await app.call('GET', `/api/v1/knowledge/${id}/documents`)).json()) as { documents: { status: string }[] }
    return documents.every(({ status }) => status === 'completed' || status === 'failed')
  })
  return id
}

describe('knowledge', () => {
  test('first_base_is_created_from_the_empty_state_and_files_become_searchable', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/knowledge')
    await page.getByText('No knowledge bases yet').waitFor()
    await picture(page, 'knowledge-empty')
    await checkAccessible(page, 'knowledge, empty')
    await page.getByRole('button', { name: 'New knowledge base' }).click()
    await page.getByLabel('Name').fill('Shop handbook')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Shop handbook' }).waitFor()
    assert.match(page.url(), /\/knowledge\/[0-9a-f-]{36}$/)
    await page.getByText('No documents yet').waitFor()

    await drop(page, [
      { name: 'refunds.md', content: REFUNDS },
      { name: 'broken.txt', content: [0xff, 0x41, 0x80] },
      { name: 'setup.exe', content: 'MZ' },
    ])
    const uploads = page.getByRole('list', { name: 'Uploads' })
    await uploads.getByText('Files of this type cannot be read.').waitFor()
    await uploads.getByText('Save it as .txt, .md, .html, .docx or .pdf').waitFor()
    await page.getByTestId('file').setInputFiles([{ name: 'shipping.md', mimeType: 'text/markdown', buffer: Buffer.from(SHIPPING) }])
    await page.getByText('2 of 4 files ready').waitFor()
    const documents = page.getByRole('list', { name: 'Documents' })
    const broken = documents.getByRole('listitem').filter({ hasText: 'broken.txt' })
    await broken.getByText(/This is not UTF-8/).waitFor()
    await broken.getByText('Failed').waitFor()
    await documents.getByRole('listitem').filter({ hasText: 'shipping.md' }).getByText('Ready').waitFor()
    await page.getByText('1 document in this knowledge base could not be read.').waitFor()
    await picture(page, 'knowledge-uploads')
    await checkAccessible(page, 'uploads')

    await page.getByRole('button', { name: 'Hide finished uploads' }).click()
    assert.equal(await uploads.count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('failed_document_can_be_read_again_and_deleted', async () => {
    const id = await createBase('Broken', { 'broken.txt': new Uint8Array([0xff, 0x41, 0x80]), 'fine.txt': 'All fine.' })
    const { page, context, problems } = await openLoggedIn(app, `/knowledge/${id}?state=failed`)
    const documents = page.getByRole('list', { name: 'Documents' })
    await documents.getByText('broken.txt').waitFor()
    assert.equal(await documents.getByRole('listitem').count(), 1)
    await page.getByRole('button', { name: 'Actions for broken.txt' }).click()
    await page.getByRole('menuitem', { name: 'Read again' }).click()
    await page.getByText('broken.txt is being read again.').waitFor()
    await documents.getByText(/This is not UTF-8/).waitFor()
    await page.getByRole('button', { name: 'Delete 1 failed document' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 1 failed document' }).click()
    await page.getByText('No document fits the filter').waitFor()
    await page.getByRole('button', { name: 'All 1' }).click()
    await documents.getByText('fine.txt').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('page_of_a_broken_document_says_what_to_do', async () => {
    const id = await createBase('Damaged', { 'letter.docx': 'No archive.', 'fine.txt': 'All fine.' })
    const { page, context, problems } = await openLoggedIn(app, `/knowledge/${id}?state=failed`)
    await page.getByText('The file is damaged, or it is not a Word document.').waitFor()
    assert.equal(await page.getByText('EOCD').count(), 0)
    await page.getByRole('link', { name: 'letter.docx' }).click()
    await page.getByText('This document could not be read').waitFor()
    await page.getByRole('button', { name: 'Read again' }).click()
    await page.getByText('letter.docx is being read again.').waitFor()
    await page.getByText('Technical details').waitFor()
    await checkAccessible(page, 'a broken document')
    await page.getByRole('button', { name: 'Delete document' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete document' }).click()
    await page.waitForURL(`${app.url}/knowledge/${id}`)
    await page.getByRole('link', { name: 'fine.txt' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'letter.docx' }).count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('search_test_shows_scores_and_marks_the_words_of_the_question', async () => {
    const id = await createBase('Searchable', { 'refunds.md': REFUNDS, 'shipping.md': SHIPPING })
    const { page, context, problems } = await openLoggedIn(app, `/knowledge/${id}`)
    await page.getByRole('tab', { name: 'Search test' }).click()
    await page.getByText('See what a model would be shown').waitFor()
    await page.getByLabel('Question').fill('When are refunds paid?')
    await page.keyboard.press('Enter')
    const first = page.getByRole('list', { name: 'Passages found' }).getByRole('listitem').first()
    await first.getByText('refunds.md').waitFor()
    await first.getByText(/Score 0\.\d{3}|Score 1\.000/).waitFor()
    await first.getByText('Shown to the model').waitFor()
    const marked = await first.locator('mark').allTextContents()
    assert.ok(marked.includes('Refunds') && marked.includes('paid'), `marked: ${marked}`)
    assert.match(page.url(), /tab=search&q=When/)
    await page.reload()
    await first.getByText('refunds.md').waitFor()
    await page.getByLabel('Question').fill('zebra')
    await page.getByRole('button', { name: 'Find passages' }).click()
    await page.getByText('No passage fits this question').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('document_shows_passages_and_text_and_jumps_to_a_passage', async () => {
    const id = await createBase('Readable', { 'refunds.md': REFUNDS })
    const { documents } = (await (await app.call('GET', `/api/v1/knowledge/${id}/documents`)).json()) as { documents: { id: string }[] }
    const doc = documents[0]?.id ?? ''
    const { page, context, problems } = await openLoggedIn(app)
    const asked: string[] = []
    await page.route(`**/documents/${doc}/chunks?*`, (route) => {
      const query = new URL(route.request().url()).searchParams
      const offset = Number(query.get('offset'))
      asked.push(String(offset))
      const chunks = Array.from({ length: Math.min(Number(query.get('limit')), 350 - offset) }, (_, at) => ({
        chunk_id: `c${offset + at}`, chunk_index: offset + at, tokens: 40 + at, text: `Passage number ${offset + at}. `.repeat(1 + ((offset + at) % 30)),
      }))
      return route.fulfill({ json: { chunks, total: 350 } })
    })
    await page.route(`**/documents/${doc}/text`, (route) => route.fulfill({ json: { text: REFUNDS, truncated: false } }))
    await page.goto(`${app.url}/knowledge/${id}/documents/${doc}?passage=240&q=refunds`)
    await page.getByRole('heading', { level: 1, name: 'refunds.md' }).waitFor()
    const shown = page.locator('#passage-240')
    await shown.getByText('Passage number 240.').first().waitFor()
    let place = NaN
    await until(async () => {
      const [frame, box] = [await page.getByRole('list', { name: 'Passages of the document' }).boundingBox(), await shown.boundingBox()]
      place = (box?.y ?? NaN) - (frame?.y ?? NaN)
      return place >= -2 && place < 40
    }, () => `the passage is ${place} px below the top`)
    assert.ok((await page.locator('article').count()) < 40, 'only visible passages are rendered')
    assert.ok(asked.includes('200'), `pages: ${asked}`)
    await checkAccessible(page, 'passages')
    await picture(page, 'knowledge-passages')
    await page.getByRole('tab', { name: 'Text' }).click()
    await page.getByText('You can return a device').waitFor()
    assert.ok((await page.locator('mark').allTextContents()).includes('Refunds'))
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('settings_are_changed_and_documents_indexed_again', async () => {
    const id = await createBase('Tunable', { 'refunds.md': REFUNDS })
    const { page, context, problems } = await openLoggedIn(app)
    const base = {
      id, name: 'Tunable', document_count: 1, created_at: new Date().toISOString(), may_change: true, passage_count: 12, search: 'words',
      settings: { chunk_tokens: 512, chunk_overlap: 50 }, embedding_model: null, stale: false,
    }
    let changed: unknown
    let reindexed = 0
    await page.route(`**/api/v1/knowledge/${id}`, async (route) => {
      if (route.request().method() === 'GET') return route.fulfill({ json: base })
      changed = route.request().postDataJSON()
      return route.fulfill({ json: { ...base, name: 'Tuned', settings: { chunk_tokens: 256, chunk_overlap: 32 }, stale: true } })
    })
    await page.route(`**/api/v1/knowledge/${id}/reindex`, (route) => {
      reindexed += 1
      return route.fulfill({ status: 202, json: { documents: 1 } })
    })
    await page.goto(`${app.url}/knowledge/${id}?tab=settings`)
    const size = page.getByLabel('Size of a passage in tokens')
    await size.fill('9')
    await page.getByText('Use a number from 64 to 2048.').waitFor()
    await size.fill('256')
    await page.getByLabel('Overlap in tokens').fill('200')
    await page.getByText('Use at most half of the size of a passage.').waitFor()
    await page.getByLabel('Overlap in tokens').fill('32')
    await page.getByLabel('Name').fill('Tuned')
    await page.getByRole('button', { name: 'Save settings' }).click()
    await page.getByText('Some documents were read with other settings').waitFor()
    assert.deepEqual(changed, { name: 'Tuned', chunk_tokens: 256, chunk_overlap: 32 })
    await picture(page, 'knowledge-settings')
    await checkAccessible(page, 'settings')
    await page.getByRole('button', { name: 'Index all documents again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Index all documents again' }).click()
    await page.getByText('Reading 1 document again.').waitFor()
    assert.equal(reindexed, 1)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('deleting_a_base_asks_for_its_name', async () => {
    const id = await createBase('Old notes', { 'a.txt': 'Something old.' })
    const { page, context, problems } = await openLoggedIn(app, `/knowledge/${id}?tab=settings`)
    await page.getByRole('button', { name: 'Delete knowledge base' }).click()
    const dialog = page.getByRole('dialog')
    const action = dialog.getByRole('button', { name: 'Delete knowledge base' })
    assert.ok(await action.isDisabled(), 'the name has to be typed first')
    await dialog.getByRole('textbox').fill('Old notes')
    await action.click()
    await page.waitForURL(`${app.url}/knowledge`)
    await page.getByText('Deleted Old notes.').waitFor()
    assert.equal((await app.call('GET', `/api/v1/knowledge/${id}/documents`)).status, 404)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('two_thousand_documents_render_only_what_is_visible', async () => {
    const id = await createBase('Large')
    const { page, context, problems } = await openLoggedIn(app)
    const documents = Array.from({ length: 2000 }, (_, index) => ({
      id: `d${index}`, kb_id: id, filename: `report-${index}.pdf`, status: 'completed', file_size: 1000 + index, created_at: new Date().toISOString(), task_id: null,
    }))
    await page.route(`**/api/v1/knowledge/${id}/documents`, (route) => route.fulfill({ json: { documents, total: 2000 } }))
    await page.goto(`${app.url}/knowledge/${id}`)
    const list = page.getByRole('list', { name: 'Documents' })
    await list.getByText('report-0.pdf').waitFor()
    assert.ok((await list.getByRole('listitem').count()) < 60)
    await page.getByLabel('Filter documents').fill('report-1999')
    await list.getByText('report-1999.pdf').waitFor()
    assert.equal(await list.getByRole('listitem').count(), 1)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('knowledge_on_a_phone_fits', async () => {
    const id = await createBase('Pocket', { 'a-rather-long-name-of-a-document-about-refunds-and-returns.md': REFUNDS })
    const { page, context, problems } = await openLoggedIn(app, `/knowledge/${id}`, { width: 360, height: 740, touch: true })
    await page.getByText('a-rather-long-name').first().waitFor()
    await checkFits(page, 'documents at 360 px')
    await page.getByRole('tab', { name: 'Search test' }).click()
    await page.getByLabel('Question').fill('refunds')
    await page.getByRole('button', { name: 'Find passages' }).click()
    await page.getByRole('list', { name: 'Passages found' }).waitFor()
    await checkFits(page, 'search at 360 px')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('pages_look_right_in_both_themes', async () => {
    const id = await createBase('Customer service', { 'refunds.md': REFUNDS, 'shipping.md': SHIPPING, 'bad.txt': new Uint8Array([0xff, 0x80]) })
    await checkLooks(app, 'knowledge', '/knowledge', (page) => page.getByRole('table', { name: 'Knowledge bases' }).waitFor())
    await checkLooks(app, 'knowledge-base', `/knowledge/${id}`, (page) => page.getByRole('list', { name: 'Documents' }).waitFor())
    await checkLooks(app, 'knowledge-search', `/knowledge/${id}?tab=search&q=When%20are%20refunds%20paid`, (page) => page.getByRole('list', { name: 'Passages found' }).waitFor())
  })
})
