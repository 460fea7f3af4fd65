import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startupMessage, unreachableOrigin } from './run-server.ts';

test('every address is shown, with the public URL where one is set', () => {
  const config = { publicUrl: 'https://berth.example/', v1: { enabled: false, sunset: '' }, data: '/data' };
  assert.equal(
    startupMessage(config, 'http://127.0.0.1:1', { file: undefined, unshownKey: undefined }, true),
    [
      'berth is up at http://127.0.0.1:1',
      '  console   https://berth.example',
      '  REST v2   https://berth.example/v2        reference at https://berth.example/v2/docs',
      '  REST v1   turned off',
      '  GraphQL   https://berth.example/graphql',
      '  docs      https://berth.example/docs',
      '  data      /data',
      '',
    ].join('\n'),
  );
});

test('a server that listens everywhere says when it gives clients an address of this machine alone', () => {
  const problem = (host: string, publicUrl: string, origin: string): string | undefined =>
    unreachableOrigin({ host, publicUrl }, origin);
  assert.match(
    problem('0.0.0.0', '', 'http://127.0.0.1:8484') ?? '',
    /begin with http:\/\/127\.0\.0\.1:8484; set publicUrl \(BERTH_PUBLIC_URL\)/,
  );
  assert.equal(problem('0.0.0.0', 'http://127.0.0.1:8484', 'http://127.0.0.1:8484'), undefined);
  assert.equal(problem('::', '', 'https://berth.example'), undefined);
  assert.equal(problem('127.0.0.1', '', 'http://127.0.0.1:8484'), undefined);
});

test('the root key is shown on a terminal only, and only if Berth made it', () => {
  const config = { publicUrl: '', v1: { enabled: true, sunset: '2026-11-15' }, data: '/data' };
  const message = (unshownKey: string | undefined, isTerminal: boolean): string =>
    startupMessage(config, 'http://127.0.0.1:1', { file: '/data/root.key', unshownKey }, isTerminal);
  assert.match(message('rpa_MADE', true), /root key {2}rpa_MADE/);
  assert.doesNotMatch(message('rpa_MADE', false), /rpa_MADE/);
  assert.match(message('rpa_MADE', false), /root key {2}in \/data\/root\.key/);
  assert.match(message(undefined, true), /root key {2}in \/data\/root\.key/);
});
