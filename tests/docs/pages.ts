import { globSync, readFileSync } from 'node:fs';
import { reasonNotRun } from './blocks-not-run.ts';
import { codeBlocks, SHOWN, type CodeBlock } from './code-blocks.ts';

/** Pages whose blocks are run in a file of their own, since they take longest. */
const GUIDES = ['README.md', 'docs/quick-start.md', 'docs/job-api.md', 'docs/jobs.md', 'docs/endpoints.md'];

/** Every page that people read, with its blocks. */
export const pages: ReadonlyMap<string, readonly CodeBlock[]> = new Map(
  [
    ...globSync(['README.md', 'CONTRIBUTING.md', 'docs/**/*.md', 'examples/*/README.md']),
    // That of packages/cloud is a copy, there while the package is made.
    ...globSync('packages/worker*/README.md'),
  ]
    .sort()
    .map((page) => [page, codeBlocks(readFileSync(page, 'utf8'))]),
);

/** The pages that a test file runs: those with something to run. */
export function pagesFor(part: 'docs' | 'guides' | 'examples'): string[] {
  return [...pages]
    .filter(([page, blocks]) => blocks.some((block) => isRun(page, block)))
    .map(([page]) => page)
    .filter(
      (page) =>
        part === (GUIDES.includes(page) ? 'guides' : page.startsWith('examples/') ? 'examples' : 'docs'),
    );
}

function isRun(page: string, block: CodeBlock): boolean {
  const checkedOnly = [...SHOWN, 'yaml', 'json'].includes(block.language);
  return !checkedOnly && reasonNotRun(page, block) === undefined;
}

/** A block of a page, by how it begins. */
export function pageBlock(page: string, starts: string): string {
  const block = pages.get(page)?.find(({ text }) => text.startsWith(starts));
  if (block === undefined) throw new Error(`${page} has no block that starts with ${starts}`);
  return block.text;
}
