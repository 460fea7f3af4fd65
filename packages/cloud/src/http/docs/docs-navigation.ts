import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DocsGroup {
  title: string;
  /** `path` is the address below /docs/: the file without `.md`. */
  pages: { path: string; title: string }[];
}

/** Pages in reading order. `clients/*` stands for all pages in that folder. */
const GROUPS: readonly { title: string; pages: readonly string[] }[] = [
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
      'security',
      'isolation',
      'quotas',
      'billing',
      'backup',
      'monitoring',
      'time',
      'benchmarks',
    ],
  },
  { title: 'Clients', pages: ['clients/*'] },
  { title: 'Inside', pages: ['worker-channel', 'design/*'] },
];

/** The pages of the documentation. One that is in no group is added to the last. */
export function docsNavigation(folder: string): DocsGroup[] {
  const existing = ['', 'clients', 'design'].flatMap((part) => pagesIn(folder, part));
  const left = new Set(existing.filter((path) => path !== 'index'));
  const take = (wanted: string): string[] => {
    const found = existing.filter(
      (path) =>
        left.has(path) &&
        (path === wanted || (wanted.endsWith('/*') && path.startsWith(wanted.slice(0, -1)))),
    );
    for (const path of found) left.delete(path);
    return found;
  };
  const groups = GROUPS.map(({ title, pages }) => ({ title, paths: pages.flatMap(take) }));
  groups.at(-1)?.paths.push(...left);
  return groups.map(({ title, paths }) => ({
    title,
    pages: paths.map((path) => ({ path, title: titleOf(folder, path) })),
  }));
}

/** The id of a heading, as GitHub makes it, so that links between pages work there too. */
export function headingId(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function pagesIn(folder: string, part: string): string[] {
  return readdirSync(join(folder, part))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => join(part, name.slice(0, -'.md'.length)));
}

/** The first heading of a page. */
function titleOf(folder: string, path: string): string {
  return /^# (.+)$/m.exec(readFileSync(join(folder, `${path}.md`), 'utf8'))?.[1] ?? path;
}
