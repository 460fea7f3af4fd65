import assert from 'node:assert/strict';
import { test } from 'node:test';
import { command } from './command-definition.ts';
import { usage } from './help.ts';
import { parseCommandLine } from './parse-command-line.ts';

const exec = command({
  name: 'exec',
  summary: 'Run a command in a pod.',
  words: { POD: 'The pod.', 'COMMAND...': 'What to run.' },
  options: {
    user: { kind: 'text', value: 'NAME', required: true, description: 'As whom.' },
    tag: { kind: 'list', choices: ['a', 'b'], description: 'Tags.' },
  },
  run: async ({ words, options }) => {
    // The types follow from the words and options above.
    const typed: { pod: string; rest: string[]; user: string; tags: ('a' | 'b')[]; json: boolean } = {
      pod: words.POD,
      rest: words.COMMAND,
      user: options.user,
      tags: options.tag,
      json: options.json,
    };
    return Promise.resolve(void typed);
  },
});

test('gives every word and option its name', () => {
  assert.deepEqual(parseCommandLine(exec, ['--user', 'me', 'p1', 'ls', '--help', '-l']), {
    help: false,
    words: { POD: 'p1', COMMAND: ['ls', '--help', '-l'] },
    options: { user: 'me', tag: [], json: false, output: undefined, help: false },
  });
});

test('checks each item of a list against the choices', () => {
  assert.throws(
    () => parseCommandLine(exec, ['--user', 'me', '--tag', 'a', '--tag', 'c', 'p1']),
    /--tag is "c"; allowed: a, b/,
  );
});

test('lets an optional word be left out', () => {
  const deploy = command({
    name: 'deploy',
    summary: 'Deploy.',
    words: { 'FOLDER?': 'What.' },
    run: async ({ words }) => Promise.resolve(void words.FOLDER),
  });
  assert.deepEqual(parseCommandLine(deploy, []), {
    help: false,
    words: { FOLDER: undefined },
    options: { json: false, output: undefined, help: false },
  });
  assert.equal(usage(deploy), 'Usage: berth deploy [FOLDER] [options]');
});

test('shows the help even if other arguments are wrong', () => {
  assert.deepEqual(parseCommandLine(exec, ['--nonsense', '-h']), { help: true });
  assert.equal(usage(exec), 'Usage: berth exec POD [COMMAND...] --user NAME [options]');
});
