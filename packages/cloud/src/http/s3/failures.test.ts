import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureOfDisk } from './failures.ts';

const systemError = (code: string): Error => Object.assign(new Error(code), { code });

test('what the disk refuses is told in the words of S3', () => {
  for (const code of ['ENOSPC', 'EDQUOT'])
    assert.equal(failureOfDisk(systemError(code))?.code, 'QuotaExceeded');
  for (const code of ['EACCES', 'EPERM'])
    assert.deepEqual(
      [failureOfDisk(systemError(code))?.code, failureOfDisk(systemError(code))?.status],
      ['AccessDenied', 403],
    );
  for (const code of ['EIO', 'ENOENT']) assert.equal(failureOfDisk(systemError(code)), undefined);
});
