import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // A data: URL would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    target: 'es2023',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
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
