import { useCallback, useEffect, useRef, useState } from 'react';
import type { Endpoint } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { formatDuration } from '../../components/format.ts';
import { SelectField, TextArea, TextField } from '../../components/form.tsx';
import { prettyJson } from '../../components/json-text.ts';
import { Card } from '../../components/page.tsx';
import { ErrorNote } from '../../components/states.tsx';
import { useUrlChoice, useUrlText } from '../../components/url-state.ts';
import { callUrl, contentTypeOf, httpSnippet, METHODS, sentBody } from './http-call.ts';
import type { HttpCall } from './http-call.ts';
import { ProgramCard } from './program-card.tsx';
import type { Language } from './snippets.ts';

interface HttpAnswer {
  status: string;
  contentType: string;
  /** What has arrived so far. */
  text: string;
  elapsedMs: number;
}

/** A request to a load balancing endpoint: whatever path its workers know. */
export function HttpPlayground({ endpoint: { id, requestUrls } }: { endpoint: Endpoint }) {
  const [method, setMethod] = useUrlChoice('method', METHODS);
  const [path, setPath] = useUrlText('path');
  const [body, setBody] = useState('');
  // The page may only call its own origin; programs call the address that the server tells.
  const own = { base: `${location.origin}/v2/${id}`, method, path, body };
  const base = requestUrls['base'] ?? own.base;
  const program = useCallback(
    (language: Language) => httpSnippet(language, { base, method, path, body }),
    [base, method, path, body],
  );
  const isOutside = callUrl(own) === undefined;
  return (
    <>
      <div className="grid two">
        <Card title="Request">
          <div className="stack">
            <SelectField
              label="Method"
              value={method}
              onChange={(event) => setMethod(event.target.value as HttpCall['method'])}
              options={METHODS.map((name) => [name, name] as const)}
            />
            <TextField
              label="Path"
              placeholder="/"
              value={path}
              hint="Of the workers, with a query if there is one"
              problem={isOutside ? 'The path leads out of the endpoint.' : undefined}
              onChange={(event) => setPath(event.target.value)}
            />
            {method !== 'GET' && (
              <TextArea
                label="Body"
                rows={10}
                value={body}
                onChange={(event) => setBody(event.target.value)}
              />
            )}
          </div>
        </Card>
        <Answer call={own} />
      </div>
      {!isOutside && <ProgramCard program={program} />}
    </>
  );
}

function Answer({ call }: { call: HttpCall }) {
  const [answer, setAnswer] = useState<HttpAnswer>();
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState<AbortController>();
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const send = async (): Promise<void> => {
    const abort = new AbortController();
    current.current = abort;
    setRunning(abort);
    setError(undefined);
    setAnswer(undefined);
    try {
      await sendCall(call, abort.signal, setAnswer);
    } catch {
      if (!abort.signal.aborted)
        setError(new Error('The connection was lost before the answer was complete.'));
    } finally {
      setRunning(undefined);
    }
  };
  return (
    <Card
      title="Answer"
      actions={
        running === undefined ? (
          <Button variant="primary" disabled={callUrl(call) === undefined} onClick={() => void send()}>
            Send
          </Button>
        ) : (
          <Button onClick={() => running.abort()}>Stop waiting</Button>
        )
      }
    >
      <div className="stack" aria-live="polite">
        {error !== undefined && <ErrorNote error={error} />}
        {answer === undefined && error === undefined && (
          <p className="muted">
            {running === undefined ? 'Press Send.' : 'Waiting for the answer; a worker may have to start …'}
          </p>
        )}
        {answer !== undefined && (
          <>
            <p>
              <strong>{answer.status}</strong>
              <span className="muted">
                {' '}
                after {formatDuration(answer.elapsedMs)} {answer.contentType}
              </span>
            </p>
            <pre
              className="note"
              tabIndex={0}
              aria-label="Answer"
              style={{ display: 'block', maxHeight: '50vh', overflow: 'auto' }}
            >
              {shownText(answer)}
            </pre>
          </>
        )}
      </div>
    </Card>
  );
}

/** Any status is an answer: it is the worker's own. A stream is shown as it arrives. */
async function sendCall(
  call: HttpCall,
  signal: AbortSignal,
  onAnswer: (answer: HttpAnswer) => void,
): Promise<void> {
  const began = performance.now();
  const body = sentBody(call);
  const response = await fetch(callUrl(call) ?? '', {
    method: call.method,
    headers: {
      'x-berth-console': '1',
      ...(body !== undefined && { 'content-type': contentTypeOf(body) }),
    },
    body: body ?? null,
    signal,
  });
  let text = '';
  const report = (): void =>
    onAnswer({
      status: `${response.status} ${response.statusText}`.trim(),
      contentType: response.headers.get('content-type') ?? '',
      text,
      elapsedMs: performance.now() - began,
    });
  report();
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    report();
  }
}

function shownText({ text, contentType }: HttpAnswer): string {
  if (!contentType.includes('json')) return prettyJson(text);
  try {
    return prettyJson(JSON.parse(text));
  } catch {
    return prettyJson(text);
  }
}
