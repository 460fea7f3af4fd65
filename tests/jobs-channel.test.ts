import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { DATABASES } from './support/databases.ts';
import { eventually, newEndpoint, PROMPT_MS, timed } from './support/jobs.ts';
import type { TestEndpoint } from './support/jobs.ts';
import { stageOn } from './support/story.ts';
import type { TestAccount } from './support/story.ts';
import { openChannel, openedChannel } from './support/worker.ts';
import type { ChannelWorker } from './support/worker.ts';

for (const kind of DATABASES) {
  describe(`the worker channel, on ${kind}`, { concurrency: true }, () => {
    const stage = stageOn(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await stage.account('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<TestEndpoint> => newEndpoint(stage.server.url, ann.key, settings);
    const open = (jobs: TestEndpoint, workerId = 'w', key = ann.key): Promise<ChannelWorker> => openedChannel({ url: stage.server.url, endpointId: jobs.id, workerId, key });
    /** What the server still has to say is said: a result that is acknowledged comes after everything before it. */
    const settled = async (channel: ChannelWorker): Promise<void> => {
      channel.send('D nonsense none {}');
      assert.equal(await channel.next('A'), 'nonsense none');
    };

    test('jobs come as long as there are credits, with a lease each, and results are acknowledged', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs, 'w-1');
      channel.send('T 2');
      const ids = [await jobs.run({ n: 1 }, { extra: [1.5] }), await jobs.run({ n: 2 }), await jobs.run({ n: 3 })];
      const [first, second] = [await channel.job(), await channel.job()];
      assert.deepEqual([first.job, second.job], [{ id: ids[0], input: { n: 1 }, extra: [1.5] }, { id: ids[1], input: { n: 2 } }]);
      assert.notEqual(first.lease, second.lease);
      assert.equal((await jobs.status(ids[0] ?? '')).workerId, 'w-1');
      await settled(channel);
      assert.deepEqual(channel.unread('J'), [], 'the credits are used up');
      channel.send(`D ${ids[0]} ${first.lease} {"output":{"float":1.0,"big":1152921504606846976}}`);
      assert.equal(await channel.next('A'), `${ids[0]} ${first.lease}`);
      const done = await jobs.call('GET', `status/${ids[0]}`);
      assert.equal(done.body.status, 'COMPLETED');
      assert.ok(done.text.includes('{"float":1.0,"big":1152921504606846976}'));
      channel.send(`D ${ids[1]} ${second.lease} {"error":"no","output":[1]}`);
      assert.deepEqual([(await jobs.ended(ids[1] ?? '')).status, (await jobs.status(ids[1] ?? '')).error], ['FAILED', 'no']);
      channel.send('T 1');
      assert.equal((await channel.job()).job.id, ids[2]);
      channel.close();
    });

    test('credits add up', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 1', 'T 2', 'T 0', 'T -5', 'T nonsense');
      for (let n = 0; n < 5; n += 1) await jobs.run({ n });
      for (let n = 0; n < 3; n += 1) assert.deepEqual((await channel.job()).job.input, { n });
      await settled(channel);
      assert.deepEqual(channel.unread('J'), []);
      assert.equal((await jobs.health()).jobs.inQueue, 2);
      channel.close();
    });

    test('credits that are void bring nothing, and later ones do', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 5', 'N');
      await settled(channel);
      const id = await jobs.run({});
      await settled(channel);
      // A take that was on its way may have it for a moment.
      await eventually(async () => assert.equal((await jobs.health()).jobs.inQueue, 1));
      assert.deepEqual(channel.unread('J'), []);
      channel.send('T 1');
      assert.equal((await channel.job()).job.id, id);
      channel.close();
    });

    test('a job that was not begun goes back as if never taken, to the head of the queue', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const [id, next] = [await jobs.run({ n: 1 }), await jobs.run({ n: 2 })];
      channel.send('T 1');
      const first = await channel.job();
      channel.send(`B ${id} ${first.lease}`);
      assert.equal(await channel.next('A'), `${id} ${first.lease}`);
      assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).retries ?? 0], ['IN_QUEUE', 0]);
      // Said twice, or by whoever does not hold it, it changes nothing.
      channel.send('T 2');
      const again = await channel.job();
      assert.equal(again.job.id, id);
      channel.send(`B ${id} ${first.lease}`, 'B nonsense x');
      assert.deepEqual(new Set([await channel.next('A'), await channel.next('A')]), new Set([`${id} ${first.lease}`, 'nonsense x']));
      channel.send(`D ${id} ${again.lease} {"output":1}`);
      assert.equal((await jobs.ended(id)).status, 'COMPLETED');
      assert.equal((await channel.job()).job.id, next);
      channel.close();
    });

    test('what a job waited in its worker is delay, not execution', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const ids = [await jobs.run({}), await jobs.run({})];
      channel.send('T 2');
      const [one, other] = [await channel.job(), await channel.job()];
      // However much a worker says, a job begins before it ends.
      channel.send(`D ${one.job.id} ${one.lease}~3600000 {"output":1}`, `D ${other.job.id} ${other.lease}~x {"output":2}`);
      assert.deepEqual([await channel.next('A'), await channel.next('A')], [`${one.job.id} ${one.lease}`, `${other.job.id} ${other.lease}`]);
      const shown = await Promise.all(ids.map((id) => jobs.status(id)));
      assert.deepEqual(shown.map(({ status }) => status), ['COMPLETED', 'COMPLETED']);
      assert.equal(shown[0]?.executionTime, 0);
      channel.close();
    });

    test('a synchronous call goes through in one round', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 100');
      const answering = (async () => {
        for (let n = 0; n < 50; n += 1) {
          const { lease, job } = await channel.job();
          channel.send(`D ${job.id} ${lease} ${JSON.stringify({ output: job.input })}`);
        }
      })();
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => jobs.runSync({ n })));
      await answering;
      assert.deepEqual(answers.map(({ body }) => [body.status, body.output]), Array.from({ length: 50 }, (_, n) => ['COMPLETED', { n }]));
      channel.close();
    });

    test('lines may come in pieces or many at once, with any text in them', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const ids = [await jobs.run(), await jobs.run(), await jobs.run(), await jobs.run()];
      channel.socket.write('T');
      await jobs.health();
      channel.socket.write(' 4');
      await jobs.health();
      assert.deepEqual(channel.unread('J'), []);
      channel.socket.write('\n');
      const leases: string[] = [];
      for (const id of ids) {
        const { lease, job } = await channel.job();
        assert.equal(job.id, id);
        leases.push(lease);
      }
      // Cut inside a character, and three lines in one packet.
      const bytes = Buffer.from(`D ${ids[0]} ${leases[0]} {"output":"Grüße 🎉"}\n`);
      const middle = bytes.indexOf(Buffer.from('🎉')) + 2;
      channel.socket.write(bytes.subarray(0, middle));
      await jobs.health();
      channel.socket.write(bytes.subarray(middle));
      channel.send(`D ${ids[1]} ${leases[1]} {"output":1}`, `D ${ids[2]} ${leases[2]} {"output":NaN}`, `D ${ids[3]} ${leases[3]} {}`);
      const acknowledged = new Set([await channel.next('A'), await channel.next('A'), await channel.next('A'), await channel.next('A')]);
      assert.deepEqual(acknowledged, new Set(ids.map((id, index) => `${id} ${leases[index]}`)));
      assert.deepEqual(await Promise.all(ids.map(async (id) => (await jobs.status(id)).output)), ['Grüße 🎉', 1, null, undefined]);
      channel.close();
    });

    test('a request that was written on many lines comes on one', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 2');
      const body = { input: { text: 'one\ntwo\r\n', list: [1, 2] }, policy: { ttl: 600_000 } };
      for (const indent of ['\t', '  ']) {
        const { body: made } = await jobs.call('POST', 'run', `\r\n${JSON.stringify(body, null, indent).replaceAll('\n', '\r\n')}\n`);
        const { lease, job } = await channel.job();
        assert.deepEqual(job, { ...body, id: made.id });
        channel.send(`D ${job.id} ${lease} {}`);
        assert.equal(await channel.next('A'), `${job.id} ${lease}`);
      }
      channel.close();
    });

    test('a large job and a large result go through', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const input = 'ö'.repeat(4_000_000);
      const id = await jobs.run(input);
      channel.send('T 1');
      const { lease, job } = await channel.job();
      assert.ok(job.input === input);
      channel.send(`D ${id} ${lease} ${JSON.stringify({ output: input + input })}`);
      await channel.next('A');
      assert.ok((await jobs.status(id)).output === input + input);
      channel.close();
    });

    test('chunks, progress and the result of a job keep their order', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const id = await jobs.run();
      channel.send('T 1');
      const { lease } = await channel.job();
      channel.send(`P ${id} ${lease} {"percent":NaN}`, `P ${id} ${lease} {"percent":50}`);
      await eventually(async () => assert.deepEqual((await jobs.status(id)).output, { percent: 50 }));
      const all = Array.from({ length: 300 }, (_, n) => n);
      channel.send(...all.map((n) => `S ${id} ${lease} {"output":${n}}`), `P ${id} ${lease} 99`, `D ${id} ${lease} {"output":"end"}`, `S ${id} ${lease} {"output":"late"}`, `P ${id} ${lease} "late"`);
      await channel.next('A');
      await settled(channel);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, all.map((output) => ({ output })));
      assert.equal((await jobs.status(id)).output, 'end');
      channel.close();
    });

    test('a wrong lease is acknowledged and changes nothing', async () => {
      const jobs = await endpoint();
      const [channel, other] = [await open(jobs, 'w-1'), await open(jobs, 'w-2')];
      const id = await jobs.run();
      channel.send('T 1');
      const { lease } = await channel.job();
      channel.send(`S ${id} wrong {"output":"wrong"}`, `P ${id} wrong "wrong"`, `D ${id} wrong {"output":"wrong"}`);
      other.send(`S ${id} ${lease} {"output":"stolen"}`, `P ${id} ${lease} "stolen"`, `D ${id} ${lease} {"output":"stolen"}`, 'D unknown x {}');
      assert.equal(await channel.next('A'), `${id} wrong`);
      assert.deepEqual(new Set([await other.next('A'), await other.next('A')]), new Set([`${id} ${lease}`, 'unknown x']));
      assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).output], ['IN_PROGRESS', undefined]);
      channel.send(`D ${id} ${lease} {"output":"right"}`, `D ${id} ${lease} {"output":"again"}`);
      assert.deepEqual([await channel.next('A'), await channel.next('A')], [`${id} ${lease}`, `${id} ${lease}`]);
      assert.equal((await jobs.status(id)).output, 'right');
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'right' }]);
      for (const one of [channel, other]) one.close();
    });

    test('one job after the other that is cancelled is stopped at once', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 3');
      for (let time = 0; time < 3; time += 1) {
        const id = await jobs.run();
        await channel.job();
        const { took, result } = await timed(async () => {
          await jobs.call('POST', `cancel/${id}`);
          for (;;) if ((await channel.next('X')) === id) return id;
        });
        assert.equal(result, id);
        assert.ok(took < 2_000, `told after ${took} ms`);
      }
      channel.close();
    });

    test('a worker that comes back under its name after it left gets jobs at once, and its name may hold any letter', async () => {
      const jobs = await endpoint();
      const name = 'wörker';
      const first = await open(jobs, encodeURIComponent(name));
      first.send('Q');
      await settled(first);
      first.close();
      const again = await open(jobs, encodeURIComponent(name));
      again.send('T 1');
      const id = await jobs.run();
      const { took } = await timed(() => again.job());
      assert.ok(took < PROMPT_MS, `it came after ${took} ms`);
      assert.equal((await jobs.status(id)).workerId, name);
      again.close();
    });

    test('a cancelled job is stopped, and told again while the worker lists it', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const [id, kept] = [await jobs.run(), await jobs.run()];
      channel.send('T 2');
      const { lease } = await channel.job();
      const other = await channel.job();
      const { took } = await timed(async () => {
        await jobs.call('POST', `cancel/${id}`);
        assert.equal(await channel.next('X'), id);
      });
      assert.ok(took < PROMPT_MS, `told after ${took} ms`);
      channel.send(`L ${id},${kept}`);
      assert.equal(await channel.next('X'), id);
      channel.send(`D ${id} ${lease} {"output":"late"}`);
      assert.equal(await channel.next('A'), `${id} ${lease}`);
      assert.equal((await jobs.status(id)).status, 'CANCELLED');
      channel.send(`D ${kept} ${other.lease} {"output":"kept"}`);
      assert.equal((await jobs.ended(kept)).output, 'kept');
      channel.close();
    });

    test('a worker that comes back within ten seconds keeps its jobs, and its lease still counts', async () => {
      const jobs = await endpoint();
      const first = await open(jobs);
      const id = await jobs.run();
      first.send('T 5');
      const { lease } = await first.job();
      first.close();
      await eventually(async () => assert.equal((await jobs.health()).jobs.inProgress, 1));
      const second = await open(jobs);
      second.send(`L ${id}`);
      const other = await jobs.run();
      await jobs.call('GET', `status-sync/${id}?wait=12000`);
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      assert.deepEqual(second.unread('J'), [], 'credits end with their connection');
      second.send(`D ${id} ${lease} {"output":"survived"}`, 'T 1');
      assert.equal(await second.next('A'), `${id} ${lease}`);
      assert.equal((await second.job()).job.id, other);
      assert.deepEqual([(await jobs.status(id)).output, (await jobs.status(id)).retries], ['survived', undefined]);
      second.close();
    });

    test('the jobs of a worker that does not come back go to another', async () => {
      const jobs = await endpoint();
      const [gone, other] = [await open(jobs, 'gone'), await open(jobs, 'other')];
      const id = await jobs.run();
      gone.send('T 1');
      const { lease } = await gone.job();
      other.send('T 1', 'L ');
      const { took, result } = await timed(async () => {
        gone.close();
        return other.job();
      });
      assert.equal(result.job.id, id);
      assert.notEqual(result.lease, lease);
      assert.ok(took >= 9_000 && took < 12_000 + PROMPT_MS, `went elsewhere after ${took} ms`);
      const back = await open(jobs, 'gone');
      back.send(`D ${id} ${lease} {"output":"stale"}`);
      assert.equal(await back.next('A'), `${id} ${lease}`);
      other.send(`D ${id} ${result.lease} {"output":"fresh"}`);
      await other.next('A');
      assert.deepEqual([(await jobs.status(id)).output, (await jobs.status(id)).retries], ['fresh', 1]);
      for (const one of [back, other]) one.close();
    });

    test('a job that was on its way when the connection broke is not lost', async () => {
      const jobs = await endpoint();
      const other = await open(jobs, 'other');
      for (let time = 0; time < 5; time += 1) {
        const gone = await open(jobs, `gone-${time}`);
        gone.send('T 1');
        await eventually(async () => assert.ok((await jobs.health()).workers.ready >= 2));
        gone.close();
        await gone.closed;
      }
      const id = await jobs.run();
      other.send('T 1');
      const { took, result } = await timed(() => other.job());
      assert.equal(result.job.id, id);
      assert.ok(took < PROMPT_MS, `went elsewhere after ${took} ms`);
      other.close();
    });

    test('a worker that goes gets no more jobs', async () => {
      const jobs = await endpoint();
      const [leaving, other] = [await open(jobs, 'leaving'), await open(jobs, 'other')];
      const held = await jobs.run();
      leaving.send('T 3');
      const { lease } = await leaving.job();
      leaving.send('Q');
      await settled(leaving);
      const id = await jobs.run();
      other.send('T 1');
      assert.equal((await other.job()).job.id, id);
      assert.deepEqual(leaving.unread('J'), []);
      leaving.send(`D ${held} ${lease} {"output":"last"}`);
      await leaving.next('A');
      assert.equal((await jobs.status(held)).output, 'last');
      for (const one of [leaving, other]) one.close();
    });

    test('a worker that asks to be replaced gets no more jobs, and its output does not show it', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const id = await jobs.run();
      channel.send('T 5');
      const { lease } = await channel.job();
      channel.send(`D ${id} ${lease} {"output":{"a":1},"stopPod":true}`);
      await channel.next('A');
      assert.deepEqual((await jobs.status(id)).output, { a: 1 });
      const other = await jobs.run();
      await settled(channel);
      assert.equal((await jobs.status(other)).status, 'IN_QUEUE');
      assert.deepEqual(channel.unread('J'), []);
      channel.close();
    });

    test('a failed check makes the worker unhealthy', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('U {"check":"gpu","reason":"no device\\u0000"}');
      await settled(channel);
      assert.equal((await jobs.health()).workers.unhealthy, 1);
      channel.close();
    });

    test('a worker counts as there while its channel is open', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      assert.deepEqual((await jobs.health()).workers, { idle: 1, initializing: 0, ready: 1, running: 0, throttled: 0, unhealthy: 0 });
      channel.send('T 1');
      const id = await jobs.run();
      const { lease } = await channel.job();
      assert.equal((await jobs.health()).workers.running, 1);
      channel.send(`D ${id} ${lease} {}`);
      await channel.next('A');
      assert.equal((await jobs.health()).workers.running, 0);
      channel.close();
    });

    test('whoever may not is refused, and the public protocol answers as ever', async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      const bob = await stage.account(`bob of ${kind}`);
      const readOnly = (await ann.call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'reader', access: 'READ_ONLY' })).body.key;
      const refusals = [
        [jobs.id, 'w', 'rpa_WRONG', '401 Unauthorized'], [jobs.id, 'w', 'rpw_wrong', '401 Unauthorized'], [jobs.id, 'w', bob.key, '404 Not Found'], [jobs.id, 'w', readOnly, '403 Forbidden'],
        ['nosuchendpoint', 'w', ann.key, '404 Not Found'], [other.id, '', ann.key, '404 Not Found'], [other.id, '%ff', ann.key, '400 Bad Request'],
      ] as const;
      for (const [endpointId, workerId, key, refused] of refusals) assert.deepEqual(await openChannel({ url: stage.server.url, endpointId, workerId, key }), { refused });
      const id = await jobs.run();
      const worker = jobs.worker();
      assert.equal((await worker.take()).id, id);
      worker.close();
    });

    test('what is not of the protocol ends the connection and nothing else', async () => {
      const jobs = await endpoint();
      const [good, id] = [await open(jobs, 'good'), await jobs.run()];
      good.send('T 1');
      const { lease } = await good.job();
      for (const line of ['Z', 'hello', `D ${id}`, `D ${id} ${lease} {"output":`, `D ${id} ${lease} []`, 'U nonsense', 'GET / HTTP/1.1']) {
        const bad = await open(jobs, 'bad');
        bad.send(line);
        await bad.closed;
      }
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      good.send(`D ${id} ${lease} {"output":"good"}`);
      await good.next('A');
      assert.equal((await jobs.status(id)).output, 'good');
      good.close();
    });

    test('a connection that is cut off while it opens harms nobody', async () => {
      const jobs = await endpoint();
      const { port } = new URL(stage.server.url);
      for (const key of [ann.key, 'rpa_WRONG']) {
        for (const path of [`/v2/${jobs.id}/job-channel/w`, '/elsewhere']) {
          for (let time = 0; time < 10; time += 1) {
            const socket = connect(Number(port), '127.0.0.1');
            socket.on('error', () => socket.destroy());
            await new Promise((resolve) => socket.once('connect', resolve));
            socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: berth-worker/1\r\nAuthorization: ${key}${time}\r\n\r\n`);
            if (time % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
            socket.resetAndDestroy();
          }
        }
      }
      assert.equal((await jobs.call('GET', 'health')).status, 200);
      assert.equal(stage.server.process.exitCode, null);
    });
  });
}
