import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { commands } from '../../packages/cloud/src/cli/commands.ts';
import { parseCommandLine } from '../../packages/cloud/src/cli/parse-command-line.ts';
import { loadConfig } from '../../packages/cloud/src/support/config/load-config.ts';
import { settingList } from '../../packages/cloud/src/support/config/settings.ts';
import { staleExceptions } from './blocks-not-run.ts';
import { RUN_ELSEWHERE } from './blocks-run-elsewhere.ts';
import { SHOWN, type CodeBlock } from './code-blocks.ts';
import { pages } from './pages.ts';
import { berthCommands } from './shell-commands.ts';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
/** Variables that are no settings: of the command line, of tests, and of the files below deploy/. */
const OTHER_VARIABLES = [
  ...['BERTH_URL', 'BERTH_API_KEY', 'BERTH_CONFIG', 'BERTH_CONTEXT', 'BERTH_OUTPUT', 'BERTH_ROOT'],
  ...['BERTH_RUNPODCTL_SOURCE', 'BERTH_DOMAIN_NAME', 'BERTH_IMAGE', 'BERTH_DOCS_BASE'],
];
const variables = new Set([...settingList.map(({ variable }) => variable), ...OTHER_VARIABLES]);

type Check = (block: CodeBlock) => Promise<void> | void;
const CHECKS: Record<string, Check> = {
  sh: async ({ text }) => {
    check('bash', ['-n'], text);
    for (const words of berthCommands(text)) await checkBerthCommand(words);
    for (const [, name = ''] of text.matchAll(/\bnpm (?:run )?([\w:]+)/g))
      assert.ok(name in scripts || name === 'install', `there is no script ${name}`);
    for (const [file] of text.matchAll(/\bdeploy\/[\w./-]+/g))
      assert.ok(existsSync(file), `there is no ${file}`);
    for (const [name] of text.matchAll(/\bBERTH_[A-Z_]+/g))
      assert.ok(variables.has(name), `there is no ${name}`);
  },
  python: ({ text }) => check('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], text),
  ts: ({ text }) => void stripTypeScriptTypes(text),
  js: ({ text }) => void stripTypeScriptTypes(text),
  json: ({ text }) => void JSON.parse(text),
  // Without a file name it is a configuration file of Berth, or a part of one.
  yaml: async ({ text, file }) => {
    if (file === 'values.yaml') checkChartValues(text);
    else await loadConfig({ argv: ['--config', 'berth.yaml'], readFile: () => Promise.resolve(text) });
  },
  // Run against a real database with the page.
  sql: () => {},
};

describe('the code blocks of every page', () => {
  test('have a language that is run, checked or only shown', () => {
    const unknown = [...pages].flatMap(([page, blocks]) =>
      blocks
        .filter(({ language }) => !(language in CHECKS) && !SHOWN.includes(language))
        .map(({ language, text }) => `${page}: ${language}: ${text.split('\n')[0]}`),
    );
    assert.deepEqual(unknown, []);
  });

  test('that are not run are on their pages', () => assert.deepEqual(staleExceptions(pages), []));

  test('that another test runs are named there', () => {
    for (const { page, test: file } of RUN_ELSEWHERE)
      assert.match(
        readFileSync(file, 'utf8'),
        new RegExp(`'(?:\\.\\./)?${page.replace('docs/clients/', '(?:docs/clients/)?')}'`),
        file,
      );
  });

  for (const [page, blocks] of pages)
    test(`of ${page} are valid, and name commands, flags, files and settings that exist`, async () => {
      for (const block of blocks)
        try {
          await CHECKS[block.language]?.(block);
        } catch (error) {
          assert.fail(`${(error as Error).message}, in\n${block.text}`);
        }
    });
});

function check(program: string, words: string[], input: string): void {
  const { status, stderr } = spawnSync(program, words, { input, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

async function checkBerthCommand(words: string[]): Promise<void> {
  if (words.length === 0 || words[0]?.startsWith('--')) return;
  const length = `${words[0]} ${words[1]}` in commands ? 2 : 1;
  const name = words.slice(0, length).join(' ');
  const load = commands[name];
  assert.ok(load !== undefined, `there is no command berth ${name}`);
  // The settings of the server are flags of `up`, which reads them itself.
  if (name === 'up') await loadConfig({ argv: words.slice(1) });
  else parseCommandLine(await load(), words.slice(length));
}

/** Every value is one that the chart has. */
function checkChartValues(text: string): void {
  const known = parse(readFileSync('deploy/helm/berth/values.yaml', 'utf8')) as Record<string, unknown>;
  for (const [name, value] of Object.entries(parse(text) as Record<string, unknown>)) {
    assert.ok(name in known, `the chart has no value ${name}`);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      for (const inner of Object.keys(value))
        assert.ok(inner in (known[name] as object), `the chart has no value ${name}.${inner}`);
  }
}
