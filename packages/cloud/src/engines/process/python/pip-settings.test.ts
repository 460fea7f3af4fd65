import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { uvVariables } from './pip-settings.ts';

const INDEX_STRATEGY = { UV_INDEX_STRATEGY: 'unsafe-best-match' };

describe('the settings of pip in the words of uv', () => {
  test('name the same indexes, files and certificates', () => {
    assert.deepEqual(
      uvVariables([
        "global.index-url='https://packages.example.com/simple'",
        ":env:.extra-index-url='https://one.example.com https://two.example.com'",
        ":env:.find-links='/wheels /more'",
        ":env:.cert='/etc/ssl/own.pem'",
        ":env:.default-timeout='180'",
        "install.no-index='true'",
      ]),
      {
        ...INDEX_STRATEGY,
        UV_DEFAULT_INDEX: 'https://packages.example.com/simple',
        UV_INDEX: 'https://one.example.com https://two.example.com',
        UV_FIND_LINKS: '/wheels,/more',
        SSL_CERT_FILE: '/etc/ssl/own.pem',
        UV_HTTP_TIMEOUT: '180',
        UV_NO_INDEX: 'true',
      },
    );
  });

  test('leave out what changes nothing, and read a list of several lines', () => {
    assert.deepEqual(
      uvVariables([
        ":env:.disable-pip-version-check='1'",
        "global.find-links='\\n/wheels\\n/more'",
        "list.format='columns'",
      ]),
      { ...INDEX_STRATEGY, UV_FIND_LINKS: '/wheels,/more' },
    );
  });

  test('are none where one of them has no counterpart', () => {
    assert.equal(uvVariables(["global.client-cert='/me.pem'"]), undefined);
    assert.equal(uvVariables([":env:.no-binary=':all:'"]), undefined);
  });
});
