/** Blocks that another test takes from their page and runs, since it has what they need. */
export interface BlockOfTest {
  page: string;
  /** How the block begins. */
  starts: string;
  /** The test: it names the page, and reads the block with `pageBlock` or the helpers of clients/. */
  test: string;
}

const BACKUP = { page: 'docs/backup.md', test: 'tests/backup-procedures.test.ts' };
const PYTHON_PAGES = 'clients/python/runpod/pages.test.ts';

export const RUN_ELSEWHERE: readonly BlockOfTest[] = [
  { ...BACKUP, starts: 'npx berth restore berth.tar --data restored --database' },
  { ...BACKUP, starts: 'npx berth backup move.tar' },
  { ...BACKUP, starts: '# stop the server\ncp -a' },
  { ...BACKUP, starts: 'npx berth backup before-upgrade.tar' },
  { ...BACKUP, starts: '# stop the server, and install the old version' },
  {
    page: 'docs/isolation.md',
    starts: 'BERTH_PROCESS_USERS',
    test: 'tests/isolation-mapped-ids.test.ts',
  },
  { page: 'docs/quick-start.md', starts: 'BERTH_KUBECONFIG', test: 'tests/deploy-kubernetes.test.ts' },
  { page: 'docs/quick-start.md', starts: 'helm install', test: 'tests/deploy/chart-installed.suite.ts' },
  { page: 'docs/deploy.md', starts: 'helm install', test: 'tests/deploy/chart-installed.suite.ts' },
  { page: 'docs/deploy.md', starts: 'docker build', test: 'tests/deploy/image-docker.test.ts' },
  { page: 'docs/deploy.md', starts: 'cd deploy', test: 'tests/deploy/compose.suite.ts' },
  { page: 'docs/deploy.md', starts: 'deploy/offline', test: 'tests/deploy/image-docker.test.ts' },
  { page: 'docs/deploy.md', starts: 'tar xzf', test: 'tests/deploy/image-docker.test.ts' },
  { page: 'docs/deploy.md', starts: 'npm install', test: 'tests/deploy/systemd.test.ts' },
  { page: 'docs/deploy.md', starts: 'BERTH_DOCS_BASE', test: 'tests/docs/site.test.ts' },
  { page: 'docs/clients/python-worker.md', starts: 'export RUNPOD', test: PYTHON_PAGES },
  {
    page: 'docs/clients/python-worker.md',
    starts: 'npx berth deploy registry.example',
    test: 'tests/examples-docker.test.ts',
  },
  { page: 'docs/clients/python-sdk.md', starts: '', test: PYTHON_PAGES },
  { page: 'docs/clients/openai.md', starts: '', test: 'clients/python/openai/chat.test.ts' },
  {
    page: 'docs/clients/frameworks.md',
    starts: 'from ',
    test: 'clients/python/frameworks/frameworks.test.ts',
  },
  {
    page: 'docs/clients/frameworks.md',
    starts: 'import { createOpenAI',
    test: 'clients/node/ai-sdk/ai-sdk.test.ts',
  },
  { page: 'docs/clients/flash.md', starts: '', test: 'clients/python/flash/deploy.test.ts' },
  { page: 'docs/clients/runpodctl.md', starts: 'export', test: 'clients/go/runpodctl.suite.ts' },
  { page: 'docs/clients/mcp-server.md', starts: '', test: 'clients/support/mcp-client.ts' },
  { page: 'examples/dockerfile/README.md', starts: 'docker build', test: 'tests/examples-docker.test.ts' },
];
