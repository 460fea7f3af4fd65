import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { registryLogin, parseReference, referenceProblem } from './image-reference.ts';

const DIGEST = `sha256:${'0a'.repeat(32)}`;

describe('image references', () => {
  test('parse to the registry and the full reference', () => {
    const cases: [string, string, string][] = [
      ['alpine', 'docker.io', 'alpine:latest'],
      ['team/image:1.2', 'docker.io', 'team/image:1.2'],
      ['docker.io/library/alpine', 'docker.io', 'docker.io/library/alpine:latest'],
      ['ghcr.io/team/sub/image:tag', 'ghcr.io', 'ghcr.io/team/sub/image:tag'],
      ['localhost/image', 'localhost', 'localhost/image:latest'],
      ['127.0.0.1:5000/image', '127.0.0.1:5000', '127.0.0.1:5000/image:latest'],
      [`registry.example/image@${DIGEST}`, 'registry.example', `registry.example/image@${DIGEST}`],
      [`image:tag@${DIGEST}`, 'docker.io', `image:tag@${DIGEST}`],
    ];
    for (const [image, registry, full] of cases)
      assert.deepEqual(parseReference(image), { registry, full }, image);
  });

  test('an invalid reference is refused with a reason', () => {
    for (const image of [
      '',
      'Image',
      'image:',
      'image@sha256:12',
      'a b',
      '/image',
      'image/',
      'image:ta g',
      'https://ghcr.io/image',
    ])
      assert.match(referenceProblem(image) ?? '', /is not a valid image name/, image);
    assert.match(referenceProblem('local/shell') ?? '', /process engine/);
    assert.equal(referenceProblem('localhost/shell'), undefined);
  });

  test('credentials are for the registry of the image', () => {
    const login = { username: 'me', password: 'secret' };
    assert.deepEqual(registryLogin('ghcr.io/team/image', login), { ...login, serveraddress: 'ghcr.io' });
    for (const image of ['team/image', 'docker.io/team/image', 'index.docker.io/team/image'])
      assert.equal(registryLogin(image, login).serveraddress, 'https://index.docker.io/v1/');
  });
});
