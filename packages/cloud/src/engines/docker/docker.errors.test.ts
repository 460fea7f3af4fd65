import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toDockerError, isNotFound, isWrongState, toStartError, daemonMessage } from './docker.errors.ts';
import { toPullError } from './image-pull.ts';

/** As the library throws it. */
function refusal(statusCode: number, message: string): Error {
  return Object.assign(new Error(`(HTTP code ${statusCode}) server error - ${message} `), {
    statusCode,
    json: { message },
  });
}

describe('what the daemon says no to', () => {
  test('is told in its words', () => {
    assert.equal(daemonMessage(refusal(404, 'No such container: x')), 'No such container: x');
    assert.equal(
      daemonMessage(new Error('(HTTP code 500) server error - out of - space ')),
      'out of - space',
    );
    assert.match(
      toDockerError(new Error('connect ECONNREFUSED')).message,
      /does not answer: connect ECONNREFUSED/,
    );
  });

  test('is for good, or for now', () => {
    assert.deepEqual(
      [400, 404, 409, 429, 500].map((status) => toDockerError(refusal(status, 'no')).code),
      ['rule', 'rule', 'unavailable', 'unavailable', 'unavailable'],
    );
    assert.equal(toDockerError(new Error('connect ENOENT')).code, 'unavailable');
    assert.equal(
      toStartError(refusal(500, 'runc: exec: "x": executable file not found in $PATH')).code,
      'rule',
    );
    assert.equal(
      toStartError(refusal(500, 'driver failed programming external connectivity')).code,
      'unavailable',
    );
    assert.equal(toStartError(new Error('connect ENOENT: no such file or directory')).code, 'unavailable');
  });

  test('is recognised under our own words', () => {
    assert.equal(isNotFound(toDockerError(refusal(404, 'no such container'))), true);
    assert.equal(isWrongState(toDockerError(refusal(409, 'is not running'))), true);
    assert.equal(
      isWrongState(toDockerError(refusal(500, 'can only kill running containers: container state improper'))),
      true,
    );
    assert.equal(isWrongState(new Error('away')), false);
  });

  test('an image that is not there will not be there, a registry that is away will be', () => {
    const codeOf = (error: Error): string => toPullError('image', error).code;
    assert.equal(codeOf(refusal(404, 'manifest for image not found')), 'rule');
    assert.equal(codeOf(refusal(500, 'unauthorized: authentication required')), 'rule');
    assert.equal(codeOf(new Error('pull access denied for image, repository does not exist')), 'rule');
    assert.equal(codeOf(refusal(500, 'dial tcp: lookup registry: no such host')), 'unavailable');
    assert.equal(codeOf(new Error('toomanyrequests: rate limit')), 'unavailable');
  });
});
