import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { createPod } from '../packages/testing/src/pod-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

describe('lists that are watched', () => {
  const fixture = serverFixture('sqlite');

  /** Watches a list, changes something, and waits for it to be shown. */
  const showsLater = async (
    words: string[],
    change: () => Promise<unknown>,
    shown: RegExp,
  ): Promise<void> => {
    const child = spawn(BERTH_COMMAND, [...words, '--watch'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        BERTH_URL: fixture.server.url,
        BERTH_API_KEY: fixture.server.key,
      },
    });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    try {
      await waitFor('the list', () => printed !== '');
      assert.doesNotMatch(printed, shown);
      await change();
      await waitFor(`${shown} in ${words.join(' ')}`, () => shown.test(printed));
    } finally {
      child.kill();
      await once(child, 'exit');
    }
  };

  test('berth pod ls --watch', () =>
    showsLater(
      ['pod', 'ls'],
      async () => assert.equal((await createPod(fixture.operator, { name: 'comes-later' })).status, 201),
      /comes-later/,
    ));

  test('berth volume ls --watch', () =>
    showsLater(
      ['volume', 'ls'],
      async () => {
        const volume = { name: 'comes-later', size: 10, dataCenter: 'LOCAL-1' };
        assert.equal((await fixture.operator.call('POST', '/v2/network-volumes', volume)).status, 201);
      },
      /comes-later/,
    ));
});
