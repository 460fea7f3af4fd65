/**
 * A worker without any library: the public worker protocol is four URLs, which Berth sets in the
 * container's environment. Take a job, run it, send the result.
 */
const {
  RUNPOD_WEBHOOK_GET_JOB: take = '',
  RUNPOD_WEBHOOK_POST_OUTPUT: done = '',
  RUNPOD_WEBHOOK_PING: ping = '',
  RUNPOD_AI_API_KEY: key = '',
  RUNPOD_POD_ID: worker = '',
} = process.env;
const headers = { authorization: key };
let current = '';
let stopping = false;

/** The handler. @param {{ input: { text?: string } }} job */
function handle({ input }) {
  return { text: (input.text ?? '').toUpperCase(), worker };
}

/** @param {string} address @param {string} id */
const fill = (address, id) => address.replaceAll('$RUNPOD_POD_ID', worker).replaceAll('$ID', id);

// A worker that does not ping for long is presumed lost.
const pinging = setInterval(
  () => {
    const address = fill(ping, worker) + (current === '' ? '' : `&job_id=${current}`);
    fetch(address, { headers, signal: AbortSignal.timeout(5000) }).catch((error) =>
      process.stderr.write(`no ping: ${error}\n`),
    );
  },
  Number(process.env['RUNPOD_PING_INTERVAL'] ?? 10_000),
);

process.on('SIGTERM', () => {
  stopping = true;
  if (current === '') process.exit(0);
});

while (!stopping) {
  try {
    const response = await fetch(`${fill(take, worker)}&job_in_progress=0`, {
      headers,
      signal: AbortSignal.timeout(90_000),
    });
    // Any other status means that there is no job now.
    if (response.status !== 200) {
      if (response.status >= 400) await new Promise((resolve) => setTimeout(resolve, 1000));
      continue;
    }
    const job = /** @type {{ id: string, input: { text?: string } }} */ (await response.json());
    current = job.id;
    let result;
    try {
      result = { output: handle(job) };
    } catch (error) {
      result = { error: String(error) };
    }
    await fetch(`${fill(done, job.id)}&isStream=false`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: JSON.stringify(result),
    });
  } catch (error) {
    process.stderr.write(`${error}\n`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  } finally {
    current = '';
  }
}
clearInterval(pinging);
