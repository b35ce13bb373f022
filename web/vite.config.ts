// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vite'
import { svelte } from '@sveltejs/vite-plugin-svelte'

// base './' lets the same files work under a path prefix; no asset is inlined because the
// content security policy allows 'self' only.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: { target: 'es2021', assetsInlineLimit: 0, modulePreload: { polyfill: false } }
})
