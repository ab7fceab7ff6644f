-- Language server for agent skills. Copy this file to ~/.config/nvim/plugin/savoir.lua. It works
-- with Neovim 0.7 and later.

local files = {
  ['SKILL.md'] = true, ['skill.md'] = true, ['Skill.md'] = true, ['AGENT.yaml'] = true,
  ['gaia-agent.yaml'] = true, ['savoir.toml'] = true, ['evals.json'] = true,
}

-- The folder of the project: where savoir.toml or .git is, else the folder of the file.
local function root(path)
  local folder = vim.fn.fnamemodify(path, ':h')
  local current = folder
  while true do
    for _, name in ipairs({ 'savoir.toml', '.git' }) do
      if vim.loop.fs_stat(current .. '/' .. name) then return current end
    end
    local parent = vim.fn.fnamemodify(current, ':h')
    if parent == current then return folder end
    current = parent
  end
end

local function is_ours(path)
  local name = vim.fn.fnamemodify(path, ':t')
  local folder = vim.fn.fnamemodify(path, ':h:t')
  return files[name] or name:match('%.workflow%.json$')
    or (folder == 'workflows' and name:match('%.json$'))
end

-- Opens a terminal for a click on a code lens. Nothing runs by itself.
local function in_terminal(action)
  return function(command)
    vim.cmd('split')
    vim.cmd('enew')
    vim.fn.termopen({ 'savoir', action, '--', command.arguments[1] })
  end
end

if vim.lsp.commands then
  vim.lsp.commands['savoir.run'] = in_terminal('run')
  vim.lsp.commands['savoir.render'] = in_terminal('render')
  vim.lsp.commands['savoir.evaluate'] = in_terminal('eval')
end

local clients = {}

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  pattern = { '*.md', '*.MD', '*.yaml', '*.toml', '*.json' },
  callback = function(event)
    local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(event.buf), ':p')
    if not is_ours(path) then return end
    local folder = root(path)
    -- A client that is still starting counts as stopped for client_is_stopped.
    if not clients[folder] then
      clients[folder] = vim.lsp.start_client({
        name = 'savoir',
        cmd = { 'savoir', 'lsp' },
        root_dir = folder,
        on_exit = function() clients[folder] = nil end,
        workspace_folders = { { uri = vim.uri_from_fname(folder), name = folder } },
      })
    end
    if clients[folder] then vim.lsp.buf_attach_client(event.buf, clients[folder]) end
  end,
})
