import { after, before, describe, test } from 'node:test'
import { checkLooks, startApp, stopBrowser, type App } from './helpers.ts'
import { chooseArchive, curious, publish, skill } from './packages.ts'

describe('looks of the registry', () => {
  let app: App
  before(async () => {
    app = await startApp()
    await publish(app, skill({ name: 'greeter', description: 'Greets people by name, in their own language.', tags: ['text', 'people'], permissions: ['network:read:api.example.org', 'filesystem:write:./out/**'] }))
    await publish(app, skill({ name: 'greeter', version: '1.1.0', description: 'Greets people by name, in their own language.', tags: ['text', 'people'], permissions: ['network:write:api.example.org', 'env:read:GREETER_TOKEN', 'filesystem:write:./out/**'], body: '# Greeter\n\nGreet people **twice**:\n\n1. by name\n2. by title\n\n```sh\ngreet Ada\n```' }))
    await publish(app, skill({ name: 'pdf-reader', license: 'Apache-2.0', tags: ['pdf'], description: 'Reads tables and text of PDF files.' }))
    await publish(app, skill({ name: 'mail-sorter', tags: ['mail'], needs: ['acme/greeter@^1.0'], permissions: ['network:read:mail.example.org'], description: 'Sorts letters by topic and writes a summary.' }))
    await publish(app, curious)
    const token = await app.call('POST', '/registry/api/v1/tokens', { name: 'release pipeline', scopes: ['publish'], namespace: 'acme', expires_in_days: 90 })
    if (!token.ok) throw new Error(await token.text())
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('registry_looks_right', async () => {
    await checkLooks(app, 'registry', '/registry', (page) => page.getByRole('link', { name: 'acme/greeter' }).waitFor())
  })

  test('registry_skill_looks_right', async () => {
    await checkLooks(app, 'registry-skill', '/registry/skills/acme/greeter', (page) => page.getByText('This version is unsigned').waitFor())
  })

  test('registry_safety_looks_right', async () => {
    await checkLooks(app, 'registry-safety', '/registry/skills/acme/curious?tab=safety', (page) => page.getByText('SSH keys are read').waitFor())
  })

  test('registry_versions_looks_right', async () => {
    await checkLooks(app, 'registry-versions', '/registry/skills/acme/greeter?tab=versions', (page) => page.getByText('It may do more than before').waitFor())
  })

  test('registry_files_looks_right', async () => {
    await checkLooks(app, 'registry-files', '/registry/skills/acme/greeter?tab=files&file=tools.py', (page) => page.getByText('def greet').waitFor())
  })

  test('registry_publisher_looks_right', async () => {
    await checkLooks(app, 'registry-publisher', '/registry/publishers/acme', (page) => page.getByRole('link', { name: 'acme/greeter' }).waitFor())
  })

  test('registry_members_looks_right', async () => {
    await checkLooks(app, 'registry-members', '/registry/publishers/acme?tab=members', (page) => page.getByLabel('Email address').waitFor())
  })

  test('registry_namespaces_looks_right', async () => {
    await checkLooks(app, 'registry-namespaces', '/registry/namespaces', (page) => page.getByRole('link', { name: 'acme' }).waitFor())
  })

  test('registry_tokens_looks_right', async () => {
    await checkLooks(app, 'registry-tokens', '/registry/tokens', (page) => page.getByText('release pipeline').waitFor())
  })

  test('registry_log_looks_right', async () => {
    await checkLooks(app, 'registry-log', '/registry/log', (page) => page.getByRole('listitem').getByText('created a token').first().waitFor())
  })

  test('registry_reviews_looks_right', async () => {
    await checkLooks(app, 'registry-reviews', '/registry/reviews', (page) => page.getByRole('region', { name: 'Appeals' }).waitFor())
  })

  test('registry_publish_looks_right', async () => {
    await checkLooks(app, 'registry-publish', '/registry/publish?namespace=acme', async (page) => {
      await chooseArchive(page, 'greeter.zip', skill({ name: 'greeter', version: '1.2.0', permissions: ['network:write:other.example.org'] }))
      await page.getByText('It may do more than before').waitFor()
    })
  })
})
