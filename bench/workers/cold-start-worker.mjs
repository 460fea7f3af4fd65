// One job for a container that has nothing but Node: takes it and answers when it had it.
const {
  RUNPOD_WEBHOOK_GET_JOB: take = '',
  RUNPOD_WEBHOOK_POST_OUTPUT: done = '',
  RUNPOD_AI_API_KEY: key = '',
  RUNPOD_POD_ID: worker = '',
} = process.env;
const headers = { authorization: key };
const fill = (/** @type {string} */ address, /** @type {string} */ id) =>
  address.replaceAll('$RUNPOD_POD_ID', worker).replaceAll('$ID', id);
process.on('SIGTERM', () => process.exit(0));
const answer = await fetch(`${fill(take, worker)}&job_in_progress=0`, { headers });
const at = performance.timeOrigin + performance.now();
const { id } = /** @type {{ id: string }} */ (await answer.json());
await fetch(`${fill(done, id)}&isStream=false`, {
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
  body: JSON.stringify({ output: at }),
});
setInterval(() => undefined, 60_000);
