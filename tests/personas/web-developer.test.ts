import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { createPersona } from './persona.fixture.ts';

/** Sends a job and reads its result, with nothing but what Node has. */
const CLIENT = `
const url = \`\${process.env.BERTH_URL}/v2/\${process.env.ENDPOINT}\`;
const headers = { authorization: \`Bearer \${process.env.BERTH_API_KEY}\`, 'content-type': 'application/json' };

interface Job<T> { id: string; status: string; output: T }

const answer = await fetch(\`\${url}/runsync\`, {
  method: 'POST',
  headers,
  body: JSON.stringify({ input: { cart: ['tea', 'cups'] }, webhook: process.env.WEBHOOK }),
});
const job = (await answer.json()) as Job<{ cart: string[] }>;
console.log(job.status, job.output.cart.length);
`;

/** Takes one webhook, checks its signature and says what it is about. */
const RECEIVER = `
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

createServer(async (request, response) => {
  const body = await buffer(request);
  const wanted = Buffer.from('sha256=' + createHmac('sha256', process.env.WEBHOOK_SECRET).update(body).digest('hex'));
  const given = Buffer.from(request.headers['x-berth-signature'] ?? '');
  const genuine = given.length === wanted.length && timingSafeEqual(given, wanted);
  response.writeHead(genuine ? 204 : 401).end();
  console.log(genuine ? 'genuine' : 'forged', JSON.parse(body).status);
}).listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listening'));
`;

test('a web developer calls an endpoint from TypeScript and gets a webhook', async (t) => {
  const { folder, isClone, url, env, watch, startServer } = await createPersona(t);
  watch.read('README.md', '', 'First result in one minute');
  watch.read('docs/job-api.md', '', 'Before you begin', 'Submit a job and wait');
  watch.read('docs/webhooks.md', '', 'Check the signature', 'Attempts');
  watch.read('docs/clients/javascript-sdk.md', '');
  await startServer('', { BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true' });
  const typed = { cwd: folder, env };
  await watch.type('berth deploy examples/echo --name echo', typed);
  const endpoint = (await watch.type('berth endpoint get echo -o name', typed)).trim();
  const made = await watch.type('berth key create --name web --access all --json', typed);
  const { key } = JSON.parse(made) as { key: string };
  const own = { ...env, BERTH_URL: url, BERTH_API_KEY: key, ENDPOINT: endpoint };

  const secret = JSON.parse(
    await watch.type(`curl -sf -H 'Authorization: Bearer ${key}' ${url}/v2/account/webhook-secret`, typed),
  ) as { secret: string };
  watch.write(join(folder, 'receiver.mjs'), RECEIVER);
  watch.write(join(folder, 'client.ts'), CLIENT);
  const port = await freePort();
  const receiver = await watch.start(`node receiver.mjs ${port}`, /listening/, {
    cwd: folder,
    env: { ...own, WEBHOOK_SECRET: secret.secret },
  });
  try {
    const called = watch.type('node client.ts', {
      cwd: folder,
      env: { ...own, WEBHOOK: `http://127.0.0.1:${port}/` },
    });
    const told = new Promise<string>((resolve) => receiver.process.stdout?.once('data', resolve));
    assert.equal(await called, 'COMPLETED 2\n');
    assert.match(await told, /genuine COMPLETED/);
  } finally {
    receiver.process.kill();
  }

  // The SDK that they may have: only the address is another.
  const project = join(folder, 'project');
  mkdirSync(project);
  if (isClone)
    await watch.type(`cd project && npm install --no-audit --no-fund --prefix . runpod-sdk`, typed);
  if (isClone || existsSync(join(folder, 'node_modules/runpod-sdk'))) {
    const program = `import sdk from 'runpod-sdk';
const endpoint = sdk(process.env.BERTH_API_KEY, { baseUrl: process.env.BERTH_URL + '/v2' }).endpoint(process.env.ENDPOINT);
console.log((await endpoint.runSync({ input: { n: 1 } })).output.n);`;
    watch.write(join(project, 'sdk.mjs'), program);
    assert.equal(await watch.type('node sdk.mjs', { cwd: project, env: own }), '1\n');
  }
  await watch.type('berth rm echo --yes', typed);
  watch.assertWithinMinutes(20);
});
