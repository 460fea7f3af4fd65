import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';

const python = installedPython('runpod');

/** Every program begins so: the key is set in code, and a call that raises is told as it is. */
const HEAD = `
import json, os, time
import runpod

runpod.api_key = os.environ["KEY"]
told = {}

def refused(call, *arguments, **named):
    try:
        return {"answer": call(*arguments, **named)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}

def until(look, within=30):
    end = time.time() + within
    while not look():
        assert time.time() < end, "not in time"
        time.sleep(0.1)
`;
const TAIL = `
print("SAID " + json.dumps(told))
`;

const ACCOUNT = `
told["user"] = runpod.get_user()
told["updated"] = runpod.update_user_settings("ssh-ed25519 AAAA one\\n\\nssh-ed25519 BBBB two")
told["again"] = runpod.get_user(api_key=os.environ["KEY"])
told["wrong"] = refused(runpod.get_user, api_key="rpa_WRONG")
told["gpus"] = runpod.get_gpus()
told["gpu"] = runpod.get_gpu("NVIDIA GeForce RTX 4090", 2)
told["no_gpu"] = refused(runpod.get_gpu, "nothing")
`;

const PODS = `
told["none"] = runpod.get_pods()
made = runpod.create_pod("trainer", "local/shell", "NVIDIA GeForce RTX 4090",
                         docker_args="sh -c 'echo here; exec sleep 1000'", env={"A": "b c"},
                         ports="8888/http, 22/tcp", volume_in_gb=5, volume_mount_path="/workspace",
                         min_vcpu_count=1, min_memory_in_gb=1, min_download=1, min_upload=1,
                         allowed_cuda_versions=["12.4", "12.8"])
told["made"] = made
until(lambda: runpod.get_pod(made["id"])["runtime"] is not None)
told["pod"] = runpod.get_pod(made["id"])
told["pods"] = [pod["id"] for pod in runpod.get_pods()]
told["stopped"] = runpod.stop_pod(made["id"])
told["exited"] = runpod.get_pod(made["id"])["desiredStatus"]
told["resumed"] = runpod.resume_pod(made["id"], 1)
until(lambda: runpod.get_pod(made["id"])["runtime"] is not None)
runpod.terminate_pod(made["id"])
told["gone"] = runpod.get_pod(made["id"])
told["twice"] = refused(runpod.terminate_pod, made["id"])
told["no_stock"] = refused(runpod.create_pod, "none", "local/shell", "NVIDIA GeForce RTX 3070")
told["no_type"] = refused(runpod.create_pod, "none", "local/shell", "NVIDIA nothing")

volume = runpod.get_user()["networkVolumes"][0]
told["volume"] = volume
with_volume = runpod.create_pod("volume", "local/shell", "NVIDIA GeForce RTX 4090",
                                docker_args="sleep 1000", network_volume_id=volume["id"])
small = runpod.create_pod("small", "local/shell", docker_args="sleep 1000", instance_id="cpu3c-2-4")
# As its documentation has it: a CPU pod of which nothing is said.
plain = runpod.create_pod("plain", "local/shell", docker_args="sleep 1000")
told["cpus"] = [runpod.get_pod(pod["id"]) for pod in (small, plain)]
template = runpod.create_template("pod template", "local/shell", "sleep 1000", ports="80/http", volume_in_gb=1)
told["from_template"] = runpod.create_pod("from template", template_id=template["id"],
                                           gpu_type_id="NVIDIA GeForce RTX 4090", data_center_id="LOCAL-1",
                                           cloud_type="SECURE")
for pod in runpod.get_pods():
    runpod.terminate_pod(pod["id"])
told["left"] = runpod.get_pods()
`;

const SERVERLESS = `
auth = runpod.create_container_registry_auth("registry", "user", "password")
told["auth"] = auth
told["renewed"] = runpod.update_container_registry_auth(auth["id"], "user2", "password2")
first = runpod.create_template("first", "local/shell", 'sh -c "sleep 1"', env={"K": "v"},
                               is_serverless=True, registry_auth_id=auth["id"], ports="80/http, 22/tcp",
                               container_disk_in_gb=12, volume_mount_path="/data")
told["first"] = first
second = runpod.create_template("second", "local/shell", is_serverless=True)
told["taken"] = refused(runpod.create_template, "second", "local/shell")
endpoint = runpod.create_endpoint("speech", first["id"], gpu_ids="ADA_24", workers_min=0, workers_max=0,
                                  flashboot=True, allowed_cuda_versions="12.4,12.8", idle_timeout=7,
                                  scaler_type="REQUEST_COUNT", scaler_value=2, gpu_count=2)
told["endpoint"] = endpoint
told["plain"] = runpod.create_endpoint("plain", first["id"], workers_max=0)
told["endpoints"] = {one["name"]: one for one in runpod.get_endpoints()}
told["moved"] = runpod.update_endpoint_template(endpoint["id"], second["id"])
told["unknown"] = refused(runpod.update_endpoint_template, "nothing", second["id"])
deleted = runpod.create_container_registry_auth("unused", "user", "password")
told["deleted"] = refused(runpod.delete_container_registry_auth, deleted["id"])
told["not_there"] = refused(runpod.delete_container_registry_auth, deleted["id"])
`;

describe('the control half of the Python SDK', () => {
  const fixture = clearedServerFixture();
  const told = (source: string, key: string): Promise<Record<string, unknown>> =>
    runPythonForJson(python, HEAD + source + TAIL, { RUNPOD_API_BASE_URL: fixture.server.url, KEY: key });

  test('get_user, update_user_settings, get_gpus, get_gpu', async () => {
    const { key, id } = await fixture.createAccount('account');
    const { user, updated, again, wrong, gpus, gpu, no_gpu: noGpu } = await told(ACCOUNT, key);
    assert.deepEqual(user, { id, pubKey: '', networkVolumes: [] });
    assert.deepEqual(updated, { id, pubKey: 'ssh-ed25519 AAAA one\n\nssh-ed25519 BBBB two' });
    assert.deepEqual(again, { ...(updated as object), networkVolumes: [] });
    assert.equal((wrong as { error: string }).error, 'AuthenticationError');
    assert.partialDeepStrictEqual(
      (gpus as { id: string }[]).find((type) => type.id === 'NVIDIA GeForce RTX 4090'),
      { displayName: 'RTX 4090', memoryInGb: 24 },
    );
    assert.partialDeepStrictEqual(gpu, {
      id: 'NVIDIA GeForce RTX 4090',
      maxGpuCount: 2,
      manufacturer: 'NVIDIA',
      memoryInGb: 24,
    });
    assert.match((noGpu as { message: string }).message, /No GPU found/);
  });

  test('create_pod, get_pod, get_pods, stop_pod, resume_pod, terminate_pod', async () => {
    const account = await fixture.createAccount('pods');
    const volume = await account.call<{ id: string }>('POST', '/v1/networkvolumes', {
      name: 'disk',
      size: 10,
      dataCenterId: 'LOCAL-1',
    });
    const {
      none,
      made,
      pod,
      pods,
      stopped,
      exited,
      resumed,
      gone,
      twice,
      no_stock: noStock,
      no_type: noType,
      volume: seen,
      cpus,
      from_template: fromTemplate,
      left,
    } = await told(PODS, account.key);
    const id = (made as { id: string }).id;
    assert.deepEqual([none, pods, left], [[], [id], []]);
    assert.partialDeepStrictEqual(made, {
      imageName: 'local/shell',
      env: ['A=b c'],
      machine: { podHostId: id },
    });
    assert.partialDeepStrictEqual(pod, {
      id,
      name: 'trainer',
      desiredStatus: 'RUNNING',
      dockerArgs: "sh -c 'echo here; exec sleep 1000'",
      env: ['A=b c'],
      gpuCount: 1,
      imageName: 'local/shell',
      ports: '8888/http,22/tcp',
      volumeInGb: 5,
      volumeMountPath: '/workspace',
      containerDiskInGb: 10,
      machine: { gpuDisplayName: 'RTX 4090' },
    });
    assert.deepEqual([stopped, exited], [{ id, desiredStatus: 'EXITED' }, 'EXITED']);
    assert.partialDeepStrictEqual(resumed, {
      id,
      desiredStatus: 'RUNNING',
      imageName: 'local/shell',
      env: ['A=b c'],
    });
    assert.equal(gone, null);
    assert.partialDeepStrictEqual(twice, { error: 'QueryError', message: 'pod not found to terminate' });
    assert.match(
      (noStock as { message: string }).message,
      /no longer any instances available with the requested specifications/,
    );
    assert.equal((noType as { error: string }).error, 'ValueError');
    assert.deepEqual(seen, { id: volume.body.id, name: 'disk', size: 10, dataCenterId: 'LOCAL-1' });
    assert.partialDeepStrictEqual(cpus, [
      { name: 'small', gpuCount: 0, vcpuCount: 2, memoryInGb: 4 },
      { name: 'plain', gpuCount: 0, vcpuCount: 2, memoryInGb: 4 },
    ]);
    assert.partialDeepStrictEqual(fromTemplate, { imageName: 'local/shell' });
  });

  test('templates, endpoints and registry credentials are created, listed and updated', async () => {
    const { key, id: userId } = await fixture.createAccount('serverless');
    const {
      auth,
      renewed,
      first,
      taken,
      endpoint,
      plain,
      endpoints,
      moved,
      unknown,
      deleted,
      not_there: notThere,
    } = await told(SERVERLESS, key);
    const authId = (auth as { id: string }).id;
    assert.deepEqual(
      [auth, renewed],
      [
        { id: authId, name: 'registry' },
        { id: authId, name: 'registry' },
      ],
    );
    assert.partialDeepStrictEqual(first, {
      name: 'first',
      imageName: 'local/shell',
      dockerArgs: 'sh -c "sleep 1"',
      containerDiskInGb: 12,
      volumeInGb: 0,
      volumeMountPath: '/data',
      ports: '80/http,22/tcp',
      env: [{ key: 'K', value: 'v' }],
      isServerless: true,
    });
    assert.match((taken as { message: string }).message, /exists already/);
    const settings = {
      name: 'speech',
      templateId: (first as { id: string }).id,
      gpuIds: 'ADA_24',
      networkVolumeId: null,
      locations: '',
      idleTimeout: 7,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 2,
      workersMin: 0,
      workersMax: 0,
      gpuCount: 2,
    };
    assert.partialDeepStrictEqual(endpoint, {
      ...settings,
      allowedCudaVersions: '12.4,12.8',
      flashBootType: 'FLASHBOOT',
    });
    assert.partialDeepStrictEqual(plain, {
      gpuIds: 'AMPERE_16',
      idleTimeout: 5,
      scalerType: 'QUEUE_DELAY',
      scalerValue: 4,
    });
    assert.partialDeepStrictEqual((endpoints as Record<string, unknown>)['speech'], {
      ...settings,
      userId,
      type: 'QB',
      env: [{ key: 'K', value: 'v' }],
      networkVolume: null,
    });
    assert.notEqual((moved as { templateId: string }).templateId, settings.templateId);
    assert.equal((unknown as { error: string }).error, 'QueryError');
    assert.deepEqual(deleted, { answer: null });
    assert.equal((notThere as { error: string }).error, 'QueryError');
  });
});
