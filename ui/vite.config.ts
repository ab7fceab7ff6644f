import { fileURLToPath } from 'node:url'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// `npm run dev` talks to a shim (scripts/shim.mjs) in front of a running server.
const target = process.env.SAVOIR_URL ?? 'http://127.0.0.1:7879'
const api = ['/api', '/openapi.json', '/mcp', '/.well-known', '/healthz']

/** A path that the app and the API share: pages go to the app, the rest to the API. */
const shared = {
  target,
  bypass: (request: { headers: { accept?: string } }) =>
    request.headers.accept?.includes('text/html') ? '/index.html' : undefined,
}

export default defineConfig(({ command }) => ({
  plugins: [
    // Names of styles from their content alone: the build is the same in every folder.
    svelte(command === 'build' ? { compilerOptions: { cssHash: ({ hash, css }) => `svelte-${hash(css)}` } } : {}),
  ],
  resolve: { alias: { $lib: fileURLToPath(new URL('./src/lib', import.meta.url)) } },
  build: {
    target: 'es2022',
    assetsDir: 'assets',
    // The module preload helper would add an inline script in older browsers.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Small files as data: URLs would need a weaker content security policy.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  server: {
    proxy: { ...Object.fromEntries(api.map((path) => [path, { target }])), '/registry': shared, '/setup': shared },
  },
}))
