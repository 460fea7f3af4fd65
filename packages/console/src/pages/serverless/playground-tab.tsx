import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import type { Endpoint, JobPage } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { Segmented } from '../../components/form.tsx';
import { formatDuration } from '../../components/format.ts';
import { JsonEditor } from '../../components/json-editor.tsx';
import { jsonProblem, prettyJson } from '../../components/json-text.ts';
import { Card } from '../../components/page.tsx';
import { ErrorNote } from '../../components/states.tsx';
import { useUrlChoice } from '../../components/url-state.ts';
import type { TabProps } from './tab-props.ts';
import { HttpPlayground } from './http-playground.tsx';
import { InputForm } from './input-form.tsx';
import { playgroundRun } from './playground-run.ts';
import type { RunUpdate } from './playground-run.ts';
import { ProgramCard } from './program-card.tsx';
import { snippet } from './snippets.ts';
import type { Language, Mode } from './snippets.ts';

const CHAT_BODY = JSON.stringify(
  { model: 'default', messages: [{ role: 'user', content: 'Hello!' }], stream: true },
  null,
  2,
);

const MODE_NAMES = ['runsync', 'run', 'stream', 'chat'] as const satisfies Mode[];

const MODES: readonly (readonly [Mode, string])[] = [
  ['runsync', 'Run and wait'],
  ['run', 'Run in the background'],
  ['stream', 'Stream'],
  ['chat', 'Chat (OpenAI)'],
];

export default function PlaygroundTab({ endpoint }: TabProps) {
  return endpoint.type === 'QUEUE' ? (
    <QueuePlayground endpoint={endpoint} />
  ) : (
    <HttpPlayground endpoint={endpoint} />
  );
}

function QueuePlayground({ endpoint }: { endpoint: Endpoint }) {
  const { id } = endpoint;
  const [mode, setMode] = useUrlChoice('mode', MODE_NAMES);
  const [view, setView] = useUrlChoice('editor', ['json', 'form']);
  const [body, setBody] = useState(mode === 'chat' ? CHAT_BODY : '{\n  "input": {}\n}');
  const [touched, setTouched] = useState(false);
  const recent = useApi<JobPage>(`/v2/serverless/${id}/jobs`, { query: { limit: 10 } });
  const inputs = [
    ...new Set(
      recent.data?.jobs.flatMap(({ inputPreview }) => (isWhole(inputPreview) ? [inputPreview] : [])),
    ),
  ];
  const first = inputs[0];
  useEffect(() => {
    if (!touched && first !== undefined && mode !== 'chat') setBody(bodyOf(first));
  }, [first, touched, mode]);
  const edit = (next: string): void => {
    setTouched(true);
    setBody(next);
  };
  const choose = (next: Mode): void => {
    if ((next === 'chat') !== (mode === 'chat')) setBody(next === 'chat' ? CHAT_BODY : bodyOf(first ?? '{}'));
    setMode(next);
  };
  const program = useCallback(
    (language: Language) => snippet(language, { origin: location.origin, endpointId: id, mode, body }),
    [id, mode, body],
  );
  return (
    <>
      <Segmented label="How to call it" value={mode} options={MODES} onChange={choose} />
      <div className="grid two">
        <Card
          title="Request"
          actions={
            mode !== 'chat' && (
              <Segmented
                label="Editor"
                value={view}
                options={[
                  ['json', 'JSON'],
                  ['form', 'Form'],
                ]}
                onChange={setView}
              />
            )
          }
        >
          <div className="stack">
            {inputs.length > 1 && mode !== 'chat' && (
              <select
                className="input"
                aria-label="Earlier inputs"
                value=""
                onChange={(event) => edit(bodyOf(event.target.value))}
              >
                <option value="">Take an earlier input …</option>
                {inputs.map((input) => (
                  <option key={input} value={input}>
                    {input.slice(0, 100)}
                  </option>
                ))}
              </select>
            )}
            {view === 'form' && mode !== 'chat' ? (
              <InputForm body={body} onChange={edit} />
            ) : (
              <JsonEditor label="Body" value={body} onChange={edit} rows={14} />
            )}
          </div>
        </Card>
        <Answer key={mode} endpointId={id} mode={mode} body={body} />
      </div>
      <ProgramCard program={program} />
    </>
  );
}

function Answer({ endpointId, mode, body }: { endpointId: string; mode: Mode; body: string }) {
  const [update, setUpdate] = useState<RunUpdate>();
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState<AbortController>();
  const isWrong = useMemo(() => jsonProblem(body) !== undefined, [body]);
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const run = async (): Promise<void> => {
    const abort = new AbortController();
    current.current = abort;
    setRunning(abort);
    setError(undefined);
    setUpdate(undefined);
    try {
      await playgroundRun({ endpointId, mode, body, signal: abort.signal, onUpdate: setUpdate });
    } catch (cause) {
      if (!abort.signal.aborted) setError(cause as Error);
    } finally {
      setRunning(undefined);
    }
  };
  return (
    <Card
      title="Answer"
      actions={
        running === undefined ? (
          <Button variant="primary" disabled={isWrong} onClick={() => void run()}>
            Run
          </Button>
        ) : (
          <Button onClick={() => running.abort()}>Stop waiting</Button>
        )
      }
    >
      <div className="stack" aria-live="polite">
        {error !== undefined && <ErrorNote error={error} />}
        {update === undefined && error === undefined && (
          <p className="muted">{running === undefined ? 'Press Run.' : 'Waiting for the answer …'}</p>
        )}
        {update?.status !== undefined && (
          <p>
            <strong>{update.status.toLowerCase().replaceAll('_', ' ')}</strong>
            <span className="muted"> after {formatDuration(update.elapsedMs)}</span>{' '}
            {update.jobId !== undefined && (
              <Link to={`/serverless/${endpointId}/requests`} search={{ job: update.jobId }}>
                details
              </Link>
            )}
          </p>
        )}
        {update?.text !== undefined && update.text !== '' && (
          <pre className="note" tabIndex={0} aria-label="Text of the answer" style={{ display: 'block' }}>
            {update.text}
          </pre>
        )}
        {update?.answer !== undefined && (
          <pre
            className="note"
            tabIndex={0}
            aria-label="Answer"
            style={{ display: 'block', maxHeight: '50vh', overflow: 'auto' }}
          >
            {prettyJson(update.answer)}
          </pre>
        )}
      </div>
    </Card>
  );
}

function bodyOf(input: string): string {
  return JSON.stringify({ input: JSON.parse(input) as unknown }, null, 2);
}

/** A preview that was cut is no JSON. */
function isWhole(preview: string | null): preview is string {
  return preview !== null && jsonProblem(preview) === undefined;
}
