import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { registerHooks } from 'node:module';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { configFileTemplate } from '../support/config/config-file-template.ts';
import { commands } from './commands.ts';
import { runBerth } from './cli-test-harness.ts';

const program = fileURLToPath(new URL('../../bin/berth.js', import.meta.url));

describe('berth', () => {
  test('up loads nothing of the other commands', async () => {
    const loaded: string[] = [];
    const hooks = registerHooks({
      load(url, context, next) {
        loaded.push(url);
        return next(url, context);
      },
    });
    await runBerth(['up', '--port', 'x']);
    hooks.deregister();
    assert.ok(loaded.some((url) => url.endsWith('/commands/up.command.ts')));
    assert.deepEqual(
      loaded.filter((url) => /yaml|client|help|commands\/(?!up)|node:sqlite/.test(url)),
      [],
    );
  });

  test('has help for itself, for a group and for every command', async () => {
    const { out } = await runBerth(['--help']);
    for (const name of Object.keys(commands)) assert.match(out, new RegExp(`^ {2}${name} `, 'm'));
    assert.deepEqual(await runBerth([]), await runBerth(['help']));
    assert.match((await runBerth(['key', '--help'])).out, /key create[^]*key revoke/);
    for (const name of Object.keys(commands)) {
      const help = await runBerth([...name.split(' '), '--unknown', '--help']);
      assert.equal(help.code, 0);
      assert.match(help.out, new RegExp(`^Usage: berth ${name} [^]*--json[^]*--help`));
      assert.ok(
        help.out.split('\n').every((line) => line.length <= 110),
        help.out,
      );
      assert.equal((await runBerth(['help', ...name.split(' ')])).out, help.out);
    }
  });

  test('every command knows its own name', async () => {
    for (const [name, load] of Object.entries(commands)) assert.equal((await load()).name, name);
  });

  test('suggests what was meant', async () => {
    const message = async (...argv: string[]) => {
      const ran = await runBerth(argv);
      assert.deepEqual([ran.code, ran.out], [2, '']);
      return ran.err;
    };
    assert.equal(await message('acount', 'list'), 'berth: unknown command "acount"; did you mean account?\n');
    assert.equal(
      await message('key', 'craete'),
      'berth: unknown command "key craete"; did you mean key create?\n',
    );
    assert.match(await message('key'), /"berth key create", "berth key list", "berth key revoke"/);
    assert.match(
      await message('key', 'frobnicate'),
      /unknown command "key frobnicate"; there is "berth key create"/,
    );
    assert.match(await message('constructor'), /unknown command "constructor"; "berth --help"/);
    assert.match(await message('--json', 'key', 'list'), /options come after the command/);
    assert.equal(
      await message('key', 'list', '--acount', 'x'),
      'berth: unknown option --acount; did you mean --account? (see "berth key list --help")\n',
    );
    assert.match(
      await message('key', 'create', '--name', 'x'),
      /--access is needed: all, read-only, restricted/,
    );
    assert.match(
      await message('key', 'create', '--name', 'x', '--access', 'some'),
      /--access is "some"; allowed: all, read-only, restricted/,
    );
    assert.match(await message('key', 'revoke'), /ID is missing/);
    assert.match(await message('key', 'revoke', 'a', 'b'), /unexpected argument "b"/);
    assert.match(
      await message('up', '--port', '99999'),
      /^berth: port from --port is "99999"; allowed: a whole number from 0 to 65535\n$/,
    );
    assert.match(await message('up', '--prot', '1'), /did you mean --port\?/);
  });

  test('config prints YAML wherever it goes, and the defaults as JSON when asked', async () => {
    assert.equal((await runBerth(['config'])).out, configFileTemplate());
    assert.equal((JSON.parse((await runBerth(['config', '--json'])).out) as { port: number }).port, 8484);
  });

  test('as a program: the version, and a failure of one line without a stack', () => {
    assert.match(
      spawnSync(process.execPath, [program, '--version'], { encoding: 'utf8' }).stdout,
      /^berth \d+\.\d+\.\d+\n$/,
    );
    const failed = spawnSync(process.execPath, [program, 'key', 'list'], {
      encoding: 'utf8',
      env: { BERTH_URL: 'http://127.0.0.1:9', BERTH_API_KEY: 'x' },
    });
    assert.deepEqual([failed.status, failed.stdout], [1, '']);
    assert.match(failed.stderr, /^berth: Berth does not answer at http:\/\/127.0.0.1:9; .*\n$/);
  });
});
