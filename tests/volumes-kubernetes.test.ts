import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { hostPathStorageClass } from '../packages/testing/src/kubernetes/storage-class.ts';
import { withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';
import { createPod, podLog } from '../packages/testing/src/pod-client.ts';
import { createS3Client, createS3Key, createVolume } from '../packages/testing/src/s3-test-client.ts';
import { serverlessFixture } from '../packages/testing/src/serverless-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { queueWorkerSource } from '../packages/testing/src/worker-sources.ts';

const PART_BYTES = 5 * 1024 ** 2;
/** A pod is started, or ends. */
const WITHIN_MS = 60_000;

interface Claim {
  spec: { resources: { requests: { storage: string } } };
  status: { phase: string };
}

await withKubernetes((cluster) => {
  describe('network volumes as claims of a Kubernetes cluster', () => {
    let engine: KubernetesEngineFixture;
    let s3: S3Client;
    let Bucket: string;
    const fixture = serverlessFixture(async () => {
      engine = await kubernetesEngineFixture(cluster, {
        storageClasses: { default: await hostPathStorageClass(cluster) },
        berthImage: 'localhost/berth-test:1',
      });
      return engine;
    });
    before(async () => {
      Bucket = await createVolume(fixture.client, { dataCenter: 'K8S-1' });
      s3 = createS3Client(fixture.server.url, await createS3Key(fixture.client), { region: 'K8S-1' });
    });
    after(() => s3.destroy());

    const claims = async (): Promise<Claim[]> =>
      (
        await engine.cluster.get<{ items: Claim[] }>(
          `/api/v1/namespaces/${engine.namespace}/persistentvolumeclaims`,
        )
      ).items;
    const put = (Key: string, Body: string | Uint8Array, more: object = {}) =>
      s3.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));
    const read = async (Key: string): Promise<string | undefined> =>
      (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString();
    /** What a pod with the volume writes. */
    const run = async (script: string): Promise<string> => {
      const { body: pod, text } = await createPod(fixture.client, {
        image: engine.image,
        cmd: ['sh', '-c', `${script}; echo; echo done; sleep 600`],
        mounts: { network: [{ volumeId: Bucket, path: '/volume' }] },
      });
      assert.ok(pod.id, text);
      const lines = await waitFor(
        'the pod is done',
        async () => {
          const written = (await podLog(fixture.client, pod.id)).map(({ line }) => line);
          return written.includes('done') && written;
        },
        WITHIN_MS,
      );
      await fixture.client.call('DELETE', `/v2/pods/${pod.id}`);
      return lines.slice(0, lines.indexOf('done')).join('\n');
    };

    test('S3, pods and workers share the files', async () => {
      await put('from/s3.txt', 'by S3', { ContentType: 'text/plain', Metadata: { owner: 'ann' } });
      assert.match(await run('cat /volume/from/s3.txt; printf "by a pod" >/volume/from/pod.txt'), /by S3/);
      assert.equal(await read('from/pod.txt'), 'by a pod');
      const endpoint = await fixture.deploy(
        'reader',
        queueWorkerSource(
          `async ({ path }) => (await import('node:fs')).readFileSync('/runpod-volume/' + path, 'utf8')`,
        ),
        { networkVolumes: [Bucket] },
      );
      const job = await fixture.runSync(endpoint, { path: 'from/pod.txt' });
      assert.deepEqual([job.status, job.output], ['COMPLETED', 'by a pod'], job.error);
      await fixture.remove(endpoint);
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'from/' }));
      assert.deepEqual(
        Contents.map(({ Key }) => Key),
        ['from/pod.txt', 'from/s3.txt'],
      );
      const object = await s3.send(new GetObjectCommand({ Bucket, Key: 'from/s3.txt' }));
      assert.deepEqual([object.ContentType, object.Metadata], ['text/plain', { owner: 'ann' }]);
      assert.equal(await object.Body?.transformToString(), 'by S3');
    });

    test('large objects, parts, conditions and copies work as on one machine', async () => {
      const content = randomBytes(3 * 1024 ** 2);
      const { ETag } = await put('large', content);
      assert.equal(ETag, `"${createHash('md5').update(content).digest('hex')}"`);
      const range = await s3.send(new GetObjectCommand({ Bucket, Key: 'large', Range: 'bytes=1000-1999' }));
      assert.deepEqual(
        Buffer.from((await range.Body?.transformToByteArray()) ?? []),
        content.subarray(1000, 2000),
      );
      await assert.rejects(put('large', 'x', { IfNoneMatch: '*' }), { name: 'PreconditionFailed' });
      await put('large', 'second', { IfMatch: ETag });
      await assert.rejects(put('large', 'third', { IfMatch: ETag }), { name: 'PreconditionFailed' });
      assert.equal(await read('large'), 'second');
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key: 'joined' }));
      const parts = [randomBytes(PART_BYTES), Buffer.from('end')];
      const Parts = [];
      for (const [index, Body] of parts.entries()) {
        const PartNumber = index + 1;
        const part = await s3.send(
          new UploadPartCommand({ Bucket, Key: 'joined', UploadId, PartNumber, Body }),
        );
        Parts.push({ PartNumber, ETag: part.ETag });
      }
      await s3.send(
        new CompleteMultipartUploadCommand({ Bucket, Key: 'joined', UploadId, MultipartUpload: { Parts } }),
      );
      await s3.send(new CopyObjectCommand({ Bucket, Key: 'copied', CopySource: `${Bucket}/joined` }));
      const copied = await s3.send(new GetObjectCommand({ Bucket, Key: 'copied' }));
      assert.deepEqual(Buffer.from((await copied.Body?.transformToByteArray()) ?? []), Buffer.concat(parts));
      await s3.send(new DeleteObjectCommand({ Bucket, Key: 'copied' }));
      await assert.rejects(read('copied'), { name: 'NoSuchKey' });
    });

    test('the files are there over REST, and the usage is measured', async () => {
      const files = `/v2/network-volumes/${Bucket}/files`;
      const listed = await fixture.client.call<{ files: { name: string }[] }>('GET', `${files}?path=from`);
      assert.deepEqual(
        listed.body.files.map(({ name }) => name),
        ['pod.txt', 's3.txt'],
        listed.text,
      );
      const content = await fixture.client.call('GET', `${files}/content?path=from/pod.txt`);
      assert.equal(content.text, 'by a pod');
      const made = await fixture.client.call('POST', `/v2/network-volumes/${Bucket}/folders`, {
        path: 'a/b',
      });
      assert.equal(made.status, 201, made.text);
      const kept = await fixture.client.call('DELETE', `${files}?path=from`);
      assert.equal(kept.status, 409, kept.text);
      const removed = await fixture.client.call('DELETE', `${files}?path=from&recursive=true`);
      assert.equal(removed.status, 204, removed.text);
      const used = await waitFor(
        'the usage is known',
        async () => {
          const { body } = await fixture.client.call<{ used: number | null }>(
            'GET',
            `/v2/network-volumes/${Bucket}`,
          );
          return body.used ?? undefined;
        },
        WITHIN_MS,
      );
      assert.equal(used, PART_BYTES + 'end'.length + 'second'.length);
    });

    test('a volume server that ended is started again', async () => {
      const path = `/api/v1/namespaces/${engine.namespace}/pods`;
      const { items } = await engine.cluster.get<{ items: { metadata: { name: string } }[] }>(path, {
        labelSelector: 'berth/volume-server',
      });
      assert.equal(items.length, 1);
      await engine.cluster.delete(`${path}/${items[0]?.metadata.name}`, { gracePeriodSeconds: 1 });
      assert.equal(await read('large'), 'second');
    });

    test('a claim grows with its volume and is deleted with it', async () => {
      const grown = await fixture.client.call('PATCH', `/v2/network-volumes/${Bucket}`, { size: 12 });
      assert.equal(grown.status, 200, grown.text);
      assert.deepEqual(
        (await claims()).map(({ spec }) => spec.resources.requests.storage),
        ['12Gi'],
      );
      const removed = await fixture.client.call('DELETE', `/v2/network-volumes/${Bucket}`);
      assert.equal(removed.status, 204, removed.text);
      await waitFor('no claim is left', async () => (await claims()).length === 0, WITHIN_MS);
      await waitFor('no pod is left', async () => (await engine.names('pods')).length === 0, WITHIN_MS);
    });
  });
});
