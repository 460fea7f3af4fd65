import type { CodeBlock } from './code-blocks.ts';

/** What a page's readers have that the test gives them: their words stand for something else on the page. */
export interface PageScene {
  /** It starts a server of its own in a clone of its own: commands find that one. */
  ownServer?: boolean;
  /** It asks for a database: PostgreSQL. */
  database?: string;
  /** Each of its programs is a worker, and answers this job. */
  worker?: { file: string; input: string };
  replacements?: readonly (readonly [onPage: string, inTest: string])[];
}

/** Stands for the address of the server that the pages of a file share. */
export const SHARED_URL = 'SHARED_URL';
/** Stands for its root key. */
export const SHARED_KEY = 'SHARED_KEY';

const SCENES: Record<string, PageScene> = {
  'README.md': { ownServer: true },
  'docs/quick-start.md': {
    ownServer: true,
    database: 'postgres://berth:password@database:5432/berth',
  },
  'docs/clients/conformance.md': {
    replacements: [
      ['--key KEY', `--key ${SHARED_KEY}`],
      ['--key2 KEY2', `--key2 ${SHARED_KEY}`],
      // One server stands for both.
      ['--against http://127.0.0.1:9000', `--against ${SHARED_URL}`],
    ],
  },
  'docs/pods.md': { replacements: [['ghcr.io/me/jupyter:1', 'local/shell sleep infinity']] },
  'packages/worker/README.md': {
    worker: { file: 'handler.ts', input: '{"name": "Ada"}' },
    replacements: [['https://example.com/', `${SHARED_URL}/healthz`]],
  },
  'packages/worker-python/README.md': {
    worker: { file: 'handler.py', input: '{"prompt": "hello"}' },
    // What the reader has.
    replacements: [
      ['import berth_worker\n', `import berth_worker\nasync def generate(prompt):\n    return prompt\n`],
    ],
  },
};

/** Programs of a page that are workers: each is deployed, and must answer a job. */
export function deployed(blocks: readonly CodeBlock[], { worker }: PageScene): CodeBlock[] {
  if (worker === undefined) return [...blocks];
  return blocks.flatMap((block, index) => {
    if (block.language === 'sh') return [block];
    const folder = `worker-${index}`;
    return [
      { ...block, file: `${folder}/${worker.file}` },
      {
        language: 'sh',
        text: `npx berth deploy ${folder}\nnpx berth run ${folder} '${worker.input}' --sync\n`,
      },
    ];
  });
}

export function pageScene(page: string): PageScene {
  return SCENES[page] ?? {};
}
