import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { environmentsToEvict } from './environment-eviction.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = 1_000 * DAY;
const RULES = { keepMs: 14 * DAY, maxBytes: 100 };

const environment = (key: string, unusedForMs: number, bytes = 1) => ({
  owner: 'root',
  key,
  folder: `/${key}`,
  usedAt: NOW - unusedForMs,
  bytes,
});

function evicted(
  environments: ReturnType<typeof environment>[],
  { running = [], deployed = [] }: { running?: string[]; deployed?: string[] } = {},
): string[] {
  const use = {
    isRunning: ({ key }: { key: string }) => running.includes(key),
    isDeployed: ({ key }: { key: string }) => deployed.includes(key),
  };
  return environmentsToEvict(environments, use, RULES, NOW).map(({ key }) => key);
}

describe('an environment is evicted', () => {
  test('when it was not used for the time that is set, unless an endpoint needs it or an instance runs with it', () => {
    const old = ['old', 'deployed', 'running'].map((key) => environment(key, 15 * DAY));
    assert.deepEqual(
      evicted([...old, environment('recent', 13 * DAY)], { deployed: ['deployed'], running: ['running'] }),
      ['old'],
    );
  });

  test('when all together are too large: those that no endpoint needs first, then the longest unused', () => {
    const environments = [
      environment('deployed-early', 5 * DAY, 60),
      environment('deployed-late', 2 * DAY, 60),
      environment('early', 4 * DAY, 60),
      environment('late', 3 * DAY, 10),
      environment('running', 6 * DAY, 10),
    ];
    assert.deepEqual(
      evicted(environments, { deployed: ['deployed-early', 'deployed-late'], running: ['running'] }),
      ['early', 'late', 'deployed-early'],
    );
  });

  test('not within an hour of its last use: an instance may be starting with it', () => {
    assert.deepEqual(evicted([environment('huge', HOUR - 1, 1_000)]), []);
    assert.deepEqual(evicted([environment('huge', HOUR + 1, 1_000)]), ['huge']);
  });
});
