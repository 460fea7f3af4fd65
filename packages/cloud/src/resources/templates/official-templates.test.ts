import assert from 'node:assert/strict';
import { test } from 'node:test';
import { officialTemplates } from './official-templates.ts';

test('official templates have unique names', () => {
  assert.equal(new Set(officialTemplates.map((template) => template.id)).size, officialTemplates.length);
  assert.equal(new Set(officialTemplates.map((template) => template.name)).size, officialTemplates.length);
});

test('the template that SDKs assume is there', () => {
  const template = officialTemplates.find(({ id }) => id === 'runpod-ubuntu');
  assert.deepEqual(
    [template?.image, template?.ports, template?.category],
    ['ubuntu:24.04', ['22/tcp'], 'CPU'],
  );
});

test('everyone may read them and no account owns them', () => {
  assert.ok(officialTemplates.every((template) => template.public && template.accountId === ''));
});

test('a serverless template has no volume', () => {
  assert.ok(
    officialTemplates
      .filter((template) => template.serverless)
      .every((template) => template.volumeSize === 0),
  );
});

test('ports are a number and a protocol', () => {
  for (const port of officialTemplates.flatMap((template) => template.ports))
    assert.match(port, /^\d+\/(http|tcp|udp)$/);
});
