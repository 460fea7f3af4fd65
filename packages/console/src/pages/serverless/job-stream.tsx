import { useEffect, useState } from 'react';

/** What a running job sends, piece by piece. */
export function JobStream({ endpointId, jobId }: { endpointId: string; jobId: string }) {
  const [chunks, setChunks] = useState<string[]>([]);
  useEffect(() => {
    setChunks([]);
    const stream = new EventSource(`/v2/${endpointId}/stream/${jobId}`);
    stream.onmessage = ({ data }: MessageEvent<string>) =>
      setChunks((current) => [...current, data].slice(-2_000));
    // The stream ends with the job; what follows is an error, and no reason to ask again.
    stream.onerror = () => stream.close();
    return () => stream.close();
  }, [endpointId, jobId]);
  if (chunks.length === 0) return null;
  return (
    <section className="stack">
      <h3>Stream</h3>
      <pre
        className="note"
        tabIndex={0}
        aria-label="Stream"
        style={{ display: 'block', maxHeight: '40vh', overflow: 'auto' }}
      >
        {chunks.map((chunk) => chunkText(chunk)).join('')}
      </pre>
    </section>
  );
}

/** Text joins; anything else is a line of JSON. */
function chunkText(data: string): string {
  const { output } = JSON.parse(data) as { output?: unknown };
  return typeof output === 'string' ? output : `${JSON.stringify(output)}\n`;
}
