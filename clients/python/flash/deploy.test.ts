import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { clearedStage } from '../../support/cleared-stage.ts';
import { pythonOf } from '../programs.ts';
import { flashEnvironment, standIn } from './environment.ts';

const python = pythonOf('flash');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

const app = (greeting: string): string => `
import asyncio, sys
from runpod_flash import Endpoint

@Endpoint(name="greeter", cpu="cpu3c-2-4", workers=(0, 1))
async def greet(name):
    if name == "nobody":
        raise ValueError("nobody is there")
    return {"greeting": f"${greeting} {name}"}

if __name__ == "__main__":
    print("SAID", asyncio.run(greet(sys.argv[1])))
`;

describe('flash deploy', { concurrency: false }, () => {
  const stage = clearedStage();
  const home = mkdtempSync(join(tmpdir(), 'berth-flash-'));
  const folder = join(home, 'greetings');
  let env: Record<string, string>;
  before(async () => {
    mkdirSync(folder);
    const image = await standIn(stage.operator, python, 'flash', 'deployed-worker.py');
    env = { PATH: process.env['PATH'] ?? '', HOME: home, ...flashEnvironment(stage.server), FLASH_CPU_IMAGE: image };
  });
  after(() => rmSync(home, { recursive: true }));

  const flash = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await run(join(python.path, '../flash'), args, { cwd: folder, env, timeout: LIMIT_MS });
    return stdout + stderr;
  };
  const call = async (name: string): Promise<string> => (await run(python.path, ['main.py', name], { cwd: folder, env, timeout: LIMIT_MS })).stdout.trim();
  const deploy = async (greeting: string): Promise<void> => {
    writeFileSync(join(folder, 'main.py'), app(greeting));
    assert.match(await flash('deploy'), /deployed to production/);
  };

  test('builds, uploads and deploys an app, and its function is called by name', async () => {
    await deploy('hello');
    assert.equal(await call('world'), "SAID {'greeting': 'hello world'}");
    await assert.rejects(call('nobody'), /nobody is there/);
  });

  test('a second deployment reaches the workers', async () => {
    await deploy('welcome');
    assert.equal(await call('world'), "SAID {'greeting': 'welcome world'}");
    const { body } = await stage.operator.call<{ endpoints: unknown[] }>('GET', '/v2/serverless');
    assert.equal(body.endpoints.length, 1);
  });

  test('lists the app and its environment, and removes both', async () => {
    assert.match(await flash('app', 'list'), /greetings/);
    assert.match(await flash('env', 'list'), /production/);
    const address = `${stage.server.url}/v2/flash/runsync`;
    const named = (name: string, key: string): Promise<Response> => fetch(address, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'x-flash-app': 'greetings', 'x-flash-environment': 'production', 'x-flash-endpoint': name }, body: '{"input":{"name":"x"}}' });
    assert.deepEqual([(await named('other', stage.server.key)).status, (await named('greeter', (await stage.account('stranger')).key)).status, (await named('greeter', 'rpa_WRONG')).status], [404, 404, 401]);
    assert.equal((await fetch(address, { method: 'POST', headers: { authorization: `Bearer ${stage.server.key}` }, body: '{}' })).status, 400);
    await flash('undeploy', '--all', '--force');
    await assert.rejects(call('world'), /not found in app 'greetings'/);
  });
});
