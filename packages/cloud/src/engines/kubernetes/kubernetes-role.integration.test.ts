import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { KUBERNETES_TEST_IMAGE } from '../../../../testing/src/kubernetes/kubernetes-cluster.ts';
import { BerthServiceAccount, type Permission } from '../../../../testing/src/kubernetes/service-account.ts';
import { hostPathStorageClass } from '../../../../testing/src/kubernetes/storage-class.ts';
import { withKubernetes } from '../../../../testing/src/kubernetes/with-kubernetes.ts';
import type { InstanceSpec } from '../instance.ts';
import { readKubeconfig } from './client/kubeconfig.ts';
import { KubernetesClient } from './client/kubernetes-client.ts';
import { KubernetesEngine } from './kubernetes-engine.ts';
import { testEngineOptions } from './kubernetes-engine.fixture.ts';
import { podName } from './pod-labels.ts';
import { PortForwards } from './port-forward.ts';

/** All other suites run with the whole role; here each use must fail without its permission. */
const TEST_TIMEOUT_MS = 60_000;
/** Since Kubernetes 1.35, which these tests do not run on, a WebSocket needs this right beside `get`. */
const NEEDED_LATER = /^(?:pods\/exec|pods\/portforward) create$/;

await withKubernetes((cluster) => {
  describe('the role of deploy/kubernetes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-kubernetes-role-'));
    const options = testEngineOptions(folder);
    const { namespace = '', installation } = options;
    const account = new BerthServiceAccount(cluster.kubeconfig, namespace);
    const admin = new KubernetesClient(() => readKubeconfig(cluster.kubeconfig));
    const engines: KubernetesEngine[] = [];
    let kubeconfig = '';
    let storageClass = '';
    let count = 0;

    before(async () => {
      kubeconfig = await account.create(folder);
      storageClass = await hostPathStorageClass(cluster);
    });
    after(async () => {
      for (const engine of engines) await engine.close();
      admin.close();
      await account.close();
      rmSync(folder, { recursive: true });
    });

    /** A new engine, as after a restart, and a promise that rejects with the first problem that it logs. */
    function open(): { engine: KubernetesEngine; problem: Promise<never> } {
      const { promise: problem, reject } = Promise.withResolvers<never>();
      problem.catch(() => undefined);
      const write = (line: string): void => {
        const { level, err } = JSON.parse(line) as { level: unknown; err?: { message: string } };
        if (err !== undefined) reject(new Error(`${String(level)}: ${err.message}`));
      };
      const log = pino({ level: 'warn' }, { write });
      const engine = new KubernetesEngine({
        ...options,
        // Logs that another one has read are not there.
        data: join(folder, `engine${engines.length}`),
        kubeconfig,
        log,
        sharedFolders: false,
        storageClasses: { default: storageClass },
      });
      engines.push(engine);
      return { engine, problem };
    }

    function spec(more: Partial<InstanceSpec> = {}): InstanceSpec {
      count += 1;
      return {
        id: `role${count}`,
        labels: { account: `account${count}` },
        image: KUBERNETES_TEST_IMAGE,
        command: { entrypoint: ['sh', '-c'], cmd: ['echo hello; sleep 600'] },
        env: {},
        ports: [],
        mounts: [],
        cpu: 0.1,
        memoryInGb: 0.25,
        gpus: null,
        containerDiskInGb: 1,
        ...more,
      };
    }

    const member = (cluster: string): InstanceSpec => {
      const network = { name: cluster, subnet: null, address: null, aliases: [`node-${count}`] };
      return spec({ labels: { account: 'acc', cluster }, network });
    };
    const volume = () => ({ id: `volume${(count += 1)}`, accountId: 'acc', sizeInGb: 1 });
    const start = async (): Promise<void> => void (await open().engine.start(spec()));
    /** Until it fails. */
    const watchPolicies = async (): Promise<void> => {
      const { engine, problem } = open();
      engine.watch(() => undefined);
      await problem;
    };
    /** Something that runs, started while all is allowed. */
    let running: { engine: KubernetesEngine; id: string };
    before(async () => {
      const { engine } = open();
      const wanted = spec();
      await engine.start(wanted);
      running = { engine, id: wanted.id };
    });

    /** What each permission is for. The first part is done with all rights. */
    const uses: Record<string, () => Promise<(() => Promise<unknown>) | undefined>> = {
      'pods create': async () => start,
      'pods delete': async () => {
        const { engine } = open();
        const wanted = spec();
        await engine.start(wanted);
        return () => engine.remove(wanted.id);
      },
      'pods get': async () => () => open().engine.stop('unknown', 0),
      'pods list': async () => () => open().engine.list(),
      'pods watch': async () => async () => {
        const { engine, problem } = open();
        const wanted = spec();
        const seen = new Promise<void>((resolve) => {
          engine.watch(({ id, status }) => {
            if (id === wanted.id && status === 'running') resolve();
          });
        });
        await engine.list();
        await running.engine.start(wanted);
        await Promise.race([seen, problem]);
      },
      'pods/log get': async () => async () => {
        const { engine, problem } = open();
        const read = async (): Promise<void> => {
          for await (const { line } of engine.logs(running.id, { follow: true }))
            if (line === 'hello') return;
        };
        await Promise.race([read(), problem]);
      },
      'pods/exec get': async () => async () => {
        const execution = await running.engine.exec(running.id, ['true']);
        execution.stdout.resume();
        await execution.exited;
      },
      'pods/portforward get': async () => () => {
        const path = `/api/v1/namespaces/${namespace}/pods/${podName(installation, running.id)}`;
        const client = new KubernetesClient(() => readKubeconfig(kubeconfig));
        return new PortForwards(client).address(path, 1).finally(() => client.close());
      },
      'secrets create': async () => start,
      'secrets patch': async () => start,
      'secrets list': async () => async () => {
        const { engine, problem } = open();
        await Promise.race([engine.list(), problem]);
      },
      'secrets delete': async () => {
        const wanted = spec();
        const name = `${podName(installation, wanted.id)}-env`;
        await admin.create(`/api/v1/namespaces/${namespace}/secrets`, {
          kind: 'Secret',
          metadata: { name },
        });
        return () => open().engine.start(wanted);
      },
      'services create': async () => () => open().engine.start(member('new')),
      'services patch': async () => {
        await open().engine.start(member('shared'));
        return () => open().engine.start(member('shared'));
      },
      'events list': async () => async () => {
        const { engine } = open();
        const told = Promise.withResolvers<void>();
        const onProgress = (line: string): void => {
          if (/^Pulling the image/.test(line)) told.resolve();
          if (/forbidden/.test(line)) told.reject(new Error(line));
        };
        const wanted = spec({ image: 'localhost:1/absent:1', onProgress });
        engine.start(wanted).catch(() => undefined);
        await told.promise.finally(() => engine.stop(wanted.id, 0));
      },
      'persistentvolumeclaims create': async () => () => open().engine.volumes?.create(volume()) ?? missing(),
      'persistentvolumeclaims get': async () => () => open().engine.volumes?.grow(volume()) ?? missing(),
      'persistentvolumeclaims patch': async () => {
        const { engine } = open();
        const wanted = volume();
        await engine.volumes?.create(wanted);
        await isBound(wanted.id);
        return () => engine.volumes?.grow({ ...wanted, sizeInGb: 2 }) ?? missing();
      },
      'persistentvolumeclaims list': async () => () => open().engine.volumes?.list() ?? missing(),
      'persistentvolumeclaims delete': async () => {
        const { engine, problem } = open();
        const wanted = volume();
        await engine.volumes?.create(wanted);
        return async () => {
          await engine.volumes?.remove(wanted.id);
          // What fails is logged and tried again.
          await Promise.race([problem, Promise.resolve()]);
        };
      },
      'networkpolicies create': async () => start,
      'networkpolicies patch': async () => {
        const wanted = spec();
        await open().engine.start(wanted);
        return () => open().engine.start(spec({ labels: wanted.labels }));
      },
      'networkpolicies list': async () => watchPolicies,
      'networkpolicies watch': async () => watchPolicies,
      'nodes list': async () => () => open().engine.capacity(),
    };

    const missing = (): never => assert.fail('the engine keeps no volumes');
    async function isBound(id: string): Promise<void> {
      const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${podName(installation, `volume-${id}`)}`;
      for (;;) {
        const { status } = await admin.get<{ status: { phase: string } }>(path);
        if (status.phase === 'Bound') return;
      }
    }

    const nameOf = ({ resource, verb }: Permission): string => `${resource} ${verb}`;
    const permissions = account.permissions();

    test('has a use for each of its permissions', () => {
      assert.deepEqual(
        permissions.map(nameOf).filter((name) => uses[name] === undefined && !NEEDED_LATER.test(name)),
        [],
      );
      assert.deepEqual(
        Object.keys(uses).filter((name) => !permissions.some((permission) => nameOf(permission) === name)),
        [],
      );
    });

    for (const permission of permissions) {
      const use = uses[nameOf(permission)];
      if (use === undefined) continue;
      test(`${nameOf(permission)} is needed`, { timeout: TEST_TIMEOUT_MS }, async () => {
        const attempt = await use();
        await account.without(permission, () =>
          assert.rejects(async () => attempt?.(), /forbidden|does not answer/i),
        );
      });
    }
  });
});
