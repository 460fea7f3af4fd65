import { RUN_ELSEWHERE } from './blocks-run-elsewhere.ts';
import type { CodeBlock } from './code-blocks.ts';

interface Exception {
  page: string;
  /** How the block begins. */
  starts: string;
  reason: string;
}

/** Blocks that cannot run in a test, and why. They are still checked (blocks-checked.test.ts). */
const NOT_RUN: readonly Exception[] = [
  {
    page: 'CONTRIBUTING.md',
    starts: 'npm run test:unit',
    reason: 'it runs all tests, so it would run itself',
  },
  {
    page: 'docs/benchmarks.md',
    starts: 'npm run bench',
    reason: 'measures for an hour, on a machine that does nothing else',
  },
  {
    page: 'docs/design/simulation.md',
    starts: 'npm run simulate -- --seed 1 ',
    reason: 'runs for half an hour; packages/testing/src/simulation has tests of the program',
  },
  { page: 'docs/clusters.md', starts: 'torchrun', reason: 'needs torch, in the pods of a cluster' },
  {
    page: 'docs/deploy.md',
    starts: 'docker build -f deploy/docker/Dockerfile -t berth .\ndocker build -f deploy/docker/runner',
    reason:
      'installs the packages of a distribution; tests/deploy/image-docker.test.ts builds the first image',
  },
  {
    page: 'docs/deploy.md',
    starts: './load.sh',
    reason: 'needs a registry that a cluster pulls from',
  },
  {
    page: 'docs/clients/runpodctl.md',
    starts: 'BERTH_RUNPODCTL_SOURCE',
    reason: 'it runs the tests that run it',
  },
  { page: 'packages/worker-python/README.md', starts: 'npm run test:python', reason: 'it runs other tests' },
];

/**
 * Blocks that need a program that CI does not install, or installs for the tests of clients: they run where
 * it is.
 */
const NEEDS: readonly (Omit<Exception, 'reason'> & { command: string })[] = [
  { page: 'docs/volumes.md', starts: 'aws s3', command: 'aws --version' },
  { page: 'docs/volumes.md', starts: 'import os\nimport boto3', command: 'python3 -c "import boto3"' },
  { page: 'README.md', starts: 'export RUNPOD_ENDPOINT_BASE_URL', command: 'python3 -c "import runpod"' },
  { page: 'docs/job-api.md', starts: '', command: 'python3 -c "import runpod"' },
  {
    page: 'docs/clients/javascript-sdk.md',
    starts: 'import runpodSdk',
    command: 'test -d node_modules/runpod-sdk',
  },
  { page: 'docs/clients/javascript-sdk.md', starts: 'import OpenAI', command: 'test -d node_modules/openai' },
  {
    page: 'docs/monitoring.md',
    starts: 'prometheus --config.file',
    command: 'prometheus --version',
  },
  { page: 'docs/isolation.md', starts: 'PORT=8484\niptables', command: 'unshare --net iptables -L' },
];

const matches =
  (page: string, { text }: CodeBlock) =>
  (exception: { page: string; starts: string }) =>
    exception.page === page && text.startsWith(exception.starts);

/** Why a block is not run with its page, if so. */
export function reasonNotRun(page: string, block: CodeBlock): string | undefined {
  return NOT_RUN.find(matches(page, block))?.reason ?? RUN_ELSEWHERE.find(matches(page, block))?.test;
}

/** A command that must succeed where the block is to run, if any. */
export function neededCommand(page: string, block: CodeBlock): string | undefined {
  const needed = NEEDS.find(matches(page, block));
  return needed !== undefined && (needed.starts !== '' || block.language === 'python')
    ? needed.command
    : undefined;
}

/** Exceptions for blocks that are on no page any more. */
export function staleExceptions(pages: ReadonlyMap<string, readonly CodeBlock[]>): string[] {
  return [...NOT_RUN, ...RUN_ELSEWHERE, ...NEEDS]
    .filter(({ page, starts }) => !pages.get(page)?.some(({ text }) => text.startsWith(starts)))
    .map(({ page, starts }) => `${page}: ${starts}`);
}

/** Blocks that follow something until they are interrupted. */
export function followsForEver({ text }: CodeBlock): boolean {
  return /curl -N .*\/v2\/events/.test(text);
}

/** Changes the machine: tried in a network of its own. */
export function changesTheFirewall({ text }: CodeBlock): boolean {
  return /^iptables /m.test(text);
}
