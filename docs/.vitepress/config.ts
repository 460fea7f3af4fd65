// The documentation as a site: `npm run docs:build`. A running Berth serves it at /docs; any static host can.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const DOCS = fileURLToPath(new URL('..', import.meta.url));

/** Pages in reading order. A page that is not listed here is added to the last group. */
const GROUPS: readonly { title: string; pages: string[] }[] = [
  { title: 'Start', pages: ['quick-start', 'concepts', 'migration', 'troubleshooting'] },
  {
    title: 'Serverless',
    pages: [
      'endpoints',
      'jobs',
      'job-api',
      'openai-handlers',
      'load-balancing',
      'webhooks',
      'berth-json',
      'python',
    ],
  },
  { title: 'Pods and data', pages: ['pods', 'terminal', 'volumes', 'clusters'] },
  { title: 'Tools', pages: ['console', 'command-line', 'events'] },
  {
    title: 'Operate',
    pages: [
      'deploy',
      'tls',
      'kubernetes',
      'several-servers',
      'upgrades',
      'configuration',
      'engines',
      'kubernetes',
      'isolation',
      'quotas',
      'several-servers',
      'upgrades',
      'billing',
      'backup',
      'monitoring',
      'time',
      'benchmarks',
    ],
  },
  { title: 'Clients', pages: pagesIn('clients') },
  { title: 'Inside', pages: ['worker-channel', ...pagesIn('design')] },
];

export default defineConfig({
  title: 'Berth',
  description: 'A self-hosted implementation of the RunPod API',
  base: '/docs/',
  cleanUrls: true,
  lastUpdated: false,
  // Words such as <domain> are text.
  markdown: { html: false },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: sidebar(),
  },
});

function sidebar() {
  const existing = new Set([...pagesIn(''), ...pagesIn('clients'), ...pagesIn('design')]);
  const listed = new Set(GROUPS.flatMap(({ pages }) => pages));
  const unlisted = [...existing].filter((page) => page !== 'index' && !listed.has(page));
  return GROUPS.map(({ title, pages }, at) => ({
    text: title,
    items: [...pages, ...(at === GROUPS.length - 1 ? unlisted : [])]
      .filter((page) => existing.has(page))
      .map((page) => ({ text: titleOf(page), link: `/${page}` })),
  }));
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(DOCS, folder))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => join(folder, name.slice(0, -'.md'.length)));
}

/** The first heading of a page. */
function titleOf(page: string): string {
  return /^# (.+)$/m.exec(readFileSync(join(DOCS, `${page}.md`), 'utf8'))?.[1] ?? page;
}
