import { useEffect, useRef, useState } from 'react';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal as Xterm } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { Note } from './states.tsx';

/** A shell in a pod or worker, over a WebSocket (docs/terminal.md). */
export default function Terminal({ path }: { path: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const terminal = new Xterm({ fontSize: 13, cursorBlink: true, theme: { background: '#0f141b' } });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(element);
    fit.fit();
    const url = new URL(path, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('columns', String(terminal.cols));
    url.searchParams.set('rows', String(terminal.rows));
    const socket = new WebSocket(url, 'berth.terminal');
    socket.binaryType = 'arraybuffer';
    // What is typed before the command runs is sent when it does.
    let isOpen = false;
    let typedEarly = '';
    const encoder = new TextEncoder();
    const type = (text: string): void => {
      if (!isOpen) typedEarly += text;
      else if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
    };
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data === 'string') showControl(data, terminal);
      else terminal.write(new Uint8Array(data));
      if (isOpen) return;
      isOpen = true;
      if (typedEarly !== '') type(typedEarly);
    };
    socket.onclose = ({ reason, code }) =>
      setProblem(reason === '' ? `The terminal was closed (${code}).` : `The terminal was closed: ${reason}`);
    terminal.onData(type);
    terminal.onResize(({ cols, rows }) => {
      if (socket.readyState === WebSocket.OPEN)
        socket.send(JSON.stringify({ type: 'resize', columns: cols, rows }));
    });
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    terminal.focus();
    return () => {
      observer.disconnect();
      socket.onclose = null;
      socket.close();
      terminal.dispose();
    };
  }, [path]);
  return (
    <div className="stack">
      {problem !== undefined && <Note tone="warn">{problem}</Note>}
      <div ref={place} className="terminal" />
    </div>
  );
}

/** Text frames are about the terminal: its end, or an error. */
function showControl(text: string, terminal: Xterm): void {
  const message = JSON.parse(text) as { type?: string; exitCode?: number; message?: string };
  if (message.type === 'error') terminal.write(`\r\n[${message.message ?? 'error'}]\r\n`);
  if (message.type === 'exit') terminal.write(`\r\n[ended with ${message.exitCode ?? '?'}]\r\n`);
}
