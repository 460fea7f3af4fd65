// The documentation as a site for packages and static hosts: `npm run docs:build`. A clone renders the
// Markdown itself.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { docsNavigation, headingId } from '../../packages/cloud/src/http/docs/docs-navigation.ts';

const DOCS = fileURLToPath(new URL('..', import.meta.url));

export default defineConfig({
  title: 'Berth',
  description: 'A self-hosted implementation of the RunPod API',
  // Below which path it is served, with a slash at both ends.
  base: process.env['BERTH_DOCS_BASE'] || '/docs/',
  cleanUrls: true,
  lastUpdated: false,
  // Words such as <domain> are text.
  markdown: { html: false, anchor: { slugify: headingId } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: docsNavigation(DOCS).map(({ title, pages }) => ({
      text: title,
      items: pages.map((page) => ({ text: page.title, link: `/${page.path}` })),
    })),
  },
});
