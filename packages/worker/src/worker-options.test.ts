import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ChannelChoice } from './worker-options.ts';
import { serve, VERSION } from './worker.ts';

const env = {
  RUNPOD_WEBHOOK_GET_JOB: 'http://127.0.0.1:9/job-take/$ID?a=1',
  RUNPOD_WEBHOOK_POST_OUTPUT: 'http://127.0.0.1:9/job-done/$ID?a=1',
};

test('invalid options are refused before anything starts', () => {
  for (const concurrency of [0, -1, 1.5, NaN])
    assert.throws(
      () => serve(() => 1, { concurrency, env }),
      /concurrency is .*; it is a whole number from 1/,
    );
  assert.throws(() => serve(() => 1, { prefetch: -1, env }), /prefetch is -1; it is a whole number from 0/);
  assert.throws(
    () => serve(() => 1, { channel: 'quick' as ChannelChoice, env }),
    /channel is "quick"; it is auto, public or fast/,
  );
  assert.throws(
    () =>
      serve(() => 1, {
        channel: 'fast',
        env: { ...env, RUNPOD_WEBHOOK_GET_JOB: 'http://127.0.0.1:9/jobs/$ID' },
      }),
    /needs an address of jobs with \/job-take\//,
  );
});

test('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  assert.equal(VERSION, version);
});
