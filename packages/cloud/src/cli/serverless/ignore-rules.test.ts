import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { IgnoreRules } from './ignore-rules.ts';

const FILES = [
  'handler.ts',
  'build',
  'build.ts',
  'lib/a.js',
  'lib/a.ts',
  'lib/deep/a.js',
  'logs/x.log',
  'logs/keep.log',
  'docs/build/x',
  'a b',
  'x1.txt',
  'x2.txt',
  'x-.txt',
  '#hash',
  '!bang',
  'abc',
  'data/raw/1.csv',
  'data/1.csv',
  'ends ',
];
const IGNORE_FILES = [
  'build\n*.js',
  '/build\n',
  'lib/',
  '/lib/*.js',
  'lib/**',
  '**/a.js',
  'lib/**/a.js',
  '*.log\n!keep.log',
  'logs/*\n!logs/keep.log',
  'logs\n!logs/keep.log',
  '# build\n\nabc  ',
  '\\#hash\n\\!bang',
  'x[0-9].txt',
  'x[!0-9].txt',
  'x?.txt',
  'a\\ b',
  '*',
  '*\n!handler.ts',
  'docs/build',
  'build/',
  '**/build',
  '**',
  'data/**/1.csv',
  'ab*',
  '[ab]bc',
  'ends\\ ',
  'h*r.ts',
  '/data/*/\n',
  'lib\r\nabc\r\n',
  '**/**/a.ts',
  'data/*',
  '[z-a]bc',
];

/** The ignored files. Nothing below an ignored folder is looked at. */
function ignored(rules: IgnoreRules): string[] {
  return FILES.filter((file) => {
    const parts = file.split('/');
    return parts.some((_, index) =>
      rules.ignores(parts.slice(0, index + 1).join('/'), index < parts.length - 1),
    );
  });
}

const git = spawnSync('git', ['--version']).status === 0;

describe('ignore rules', () => {
  test('mean the same as to git', { skip: !git && 'git is not installed' }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-ignore-'));
    try {
      spawnSync('git', ['init', '-q', folder]);
      for (const file of FILES) {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        writeFileSync(join(folder, file), '');
      }
      for (const text of IGNORE_FILES) {
        writeFileSync(join(folder, '.gitignore'), text);
        const { stdout } = spawnSync(
          'git',
          ['-C', folder, '-c', 'core.excludesFile=/dev/null', 'check-ignore', '--no-index', '-z', '--stdin'],
          { input: FILES.join('\0'), encoding: 'utf8' },
        );
        assert.deepEqual(
          ignored(new IgnoreRules(text)),
          stdout.split('\0').filter((line) => line !== ''),
          JSON.stringify(text),
        );
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('without a pattern ignore nothing', () => {
    for (const text of ['', '\n\n', '# all\n', '/', '!', '!abc'])
      assert.deepEqual(ignored(new IgnoreRules(text)), [], JSON.stringify(text));
  });
});
