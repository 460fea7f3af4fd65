import { readFileSync } from 'node:fs';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import type { Plugin } from 'vite';

/**
 * What the first page loads is compiled while it arrives, beside the main thread. Browsers that do not know
 * the comment compile each function when it is first called.
 */
const compileEarly: Plugin = {
  name: 'compile-early',
  generateBundle: {
    // The comment has to be the first thing in the file.
    order: 'post',
    handler(_, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
      const first = new Set<string>();
      const add = (fileName: string): void => {
        if (first.has(fileName)) return;
        first.add(fileName);
        for (const imported of chunks.find((chunk) => chunk.fileName === fileName)?.imports ?? [])
          add(imported);
      };
      for (const chunk of chunks) if (chunk.isEntry) add(chunk.fileName);
      for (const chunk of chunks)
        if (first.has(chunk.fileName)) chunk.code = `//# allFunctionsCalledOnLoad\n${chunk.code}`;
    },
  },
};

/** The logo in the page itself: it is there with the first paint. */
const logoInPage: Plugin = {
  name: 'logo-in-page',
  transformIndexHtml: (page) =>
    page.replace('<!-- logo.svg -->', readFileSync(new URL('src/shell/logo.svg', import.meta.url), 'utf8')),
};

export default defineConfig({
  plugins: [react(), compileEarly, logoInPage],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // A data: URL would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    target: 'es2023',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // Two files of about the same size are compiled at the same time, each on a thread.
        codeSplitting: {
          groups: [
            {
              name: 'react',
              tags: ['$initial'],
              test: /node_modules\/(?:react|react-dom|scheduler)\//,
            },
            { name: 'shell', tags: ['$initial'] },
          ],
        },
      },
    },
  },
  // For work on the console itself: `npx vite packages/console` beside a running server.
  server: {
    proxy: {
      '/v2': 'http://127.0.0.1:8484',
      '/login': {
        target: 'http://127.0.0.1:8484',
        bypass: ({ method }) => (method === 'POST' ? undefined : '/index.html'),
      },
      '/logout': 'http://127.0.0.1:8484',
    },
  },
});
