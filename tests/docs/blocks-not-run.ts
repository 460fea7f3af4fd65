import type { CodeBlock } from './code-blocks.ts';

interface Exception {
  page: string;
  /** How the block begins. */
  starts: string;
  reason: string;
}

/**
 * Blocks that cannot run in a test, with what runs the same instead. They are still checked
 * (docs-blocks-checked.test.ts).
 */
const NOT_RUN: readonly Exception[] = [
  {
    page: 'README.md',
    starts: 'git clone',
    reason: 'the repository has no address yet; tests/first-start.test.ts runs npm start',
  },
  { page: 'docs/quick-start.md', starts: 'git clone', reason: 'tests/first-start.test.ts runs npm start' },
  { page: 'docs/quick-start.md', starts: 'npm start', reason: 'a server that others reach' },
  {
    page: 'docs/quick-start.md',
    starts: 'BERTH_DATABASE_URL',
    reason: 'tests/several-servers.test.ts does this',
  },
  {
    page: 'docs/quick-start.md',
    starts: 'BERTH_KUBECONFIG',
    reason: 'needs a cluster; the tests of the Kubernetes engine connect one like this',
  },
  {
    page: 'docs/quick-start.md',
    starts: 'helm install',
    reason: 'needs a cluster; tests/deploy/chart-installed.suite.ts installs the chart',
  },
  { page: 'CONTRIBUTING.md', starts: 'npm', reason: 'it runs all tests' },
  {
    page: 'docs/isolation.md',
    starts: 'BERTH_PROCESS_USERS',
    reason: 'it needs an ordinary user with ids to map; tests/isolation-mapped-ids.test.ts runs it as one',
  },
  {
    page: 'docs/backup.md',
    starts: 'npx berth restore berth.tar --data restored --database',
    reason: 'a server of its own; tests/backup.test.ts restores into PostgreSQL',
  },
  {
    page: 'docs/backup.md',
    starts: 'npx berth backup move.tar',
    reason: 'tests/backup-procedures.test.ts follows it',
  },
  {
    page: 'docs/backup.md',
    starts: '# stop the server\ncp -a',
    reason: 'tests/backup-procedures.test.ts follows it',
  },
  {
    page: 'docs/backup.md',
    starts: 'npx berth backup before-upgrade.tar',
    reason: 'tests/backup-procedures.test.ts follows it',
  },
  {
    page: 'docs/backup.md',
    starts: '# stop the server, and install the old version',
    reason: 'tests/backup-procedures.test.ts follows it',
  },
  { page: 'docs/benchmarks.md', starts: 'npm run bench', reason: 'it measures for minutes' },
  { page: 'docs/clusters.md', starts: 'torchrun', reason: 'needs torch, in a pod of a cluster' },
  {
    page: 'docs/deploy.md',
    starts: 'docker build',
    reason: 'takes minutes; tests/deploy/image-docker.test.ts builds the image',
  },
  { page: 'docs/deploy.md', starts: 'cd deploy', reason: 'needs a domain' },
  {
    page: 'docs/deploy.md',
    starts: 'npm install',
    reason: 'needs systemd; tests/deploy/systemd.test.ts reads the unit',
  },
  {
    page: 'docs/deploy.md',
    starts: 'helm install',
    reason: 'needs a cluster; tests/deploy/chart.test.ts installs the chart',
  },
  {
    page: 'docs/deploy.md',
    starts: 'BERTH_DOCS_BASE',
    reason: 'tests/docs/site.test.ts builds the site',
  },
  { page: 'docs/deploy.md', starts: 'deploy/offline/bundle.sh', reason: 'builds the image' },
  { page: 'docs/deploy.md', starts: 'tar xzf', reason: 'needs a registry' },
  {
    page: 'docs/design/simulation.md',
    starts: 'npm run simulate',
    reason: 'runs for minutes; the simulation has tests of its own',
  },
  {
    page: 'docs/monitoring.md',
    starts: 'prometheus --config.file',
    reason: 'runs until it is ended; tests/monitoring runs Prometheus',
  },
  {
    page: 'docs/monitoring.md',
    starts: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    reason: 'a server of its own; tests/traces.test.ts starts one with a receiver',
  },
  {
    page: 'docs/pods.md',
    starts: 'npx berth pod create --name lab',
    reason: 'the image stands for one of your own',
  },
  {
    page: 'docs/clients/conformance.md',
    starts: 'npm run conformance',
    reason: 'tests/conformance.test.ts runs it',
  },
  {
    page: 'docs/clients/python-worker.md',
    starts: 'npx berth deploy my-worker',
    reason: 'installs the runpod package for minutes; tests/examples-python.test.ts runs the same',
  },
  {
    page: 'docs/clients/python-worker.md',
    starts: 'npx berth deploy registry.example',
    reason: 'the image stands for one of your own',
  },
  {
    page: 'docs/clients/openai.md',
    starts: 'pip install',
    reason: 'installs a package; clients/python/openai has it in an environment of its own',
  },
  { page: 'docs/clients/flash.md', starts: '', reason: 'clients/python/flash runs the page' },
  { page: 'docs/clients/openai.md', starts: '', reason: 'clients/python/openai runs the page' },
  { page: 'docs/clients/python-sdk.md', starts: '', reason: 'clients/python/runpod runs the page' },
  { page: 'docs/clients/python-worker.md', starts: '', reason: 'clients/python/runpod runs the page' },
  {
    page: 'docs/clients/runpodctl.md',
    starts: '',
    reason: 'clients/go/runpodctl takes its variables from the page',
  },
  {
    page: 'docs/clients/mcp-server.md',
    starts: '',
    reason: 'clients/node/mcp-server takes its variables from the page',
  },
  {
    page: 'examples/dockerfile/README.md',
    starts: 'docker build',
    reason: 'tests/examples-docker.test.ts runs it',
  },
  {
    page: 'examples/python-echo/README.md',
    starts: 'npx berth',
    reason: 'installs the runpod package for minutes; tests/examples-python.test.ts runs it',
  },
  { page: 'packages/worker/README.md', starts: '', reason: 'the tests of the package run its handlers' },
  { page: 'packages/worker-python/README.md', starts: '', reason: 'npm run test:python runs its handlers' },
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
  { page: 'docs/isolation.md', starts: 'PORT=8484\niptables', command: 'unshare --net iptables -L' },
];

const matches =
  (page: string, { text }: CodeBlock) =>
  (exception: { page: string; starts: string }) =>
    exception.page === page && text.startsWith(exception.starts);

/** Why a block is not run at all, if so. */
export function reasonNotRun(page: string, block: CodeBlock): string | undefined {
  return NOT_RUN.find(matches(page, block))?.reason;
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
  return [...NOT_RUN, ...NEEDS]
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
