/**
 * The text of a small server for a pod, for `node -e`. It tells what it was asked, sends bodies
 * back as they come, counts events, redirects, sets a cookie and echoes WebSockets. It listens on
 * the port that it is given, or on 8000. Pods that are processes share the ports of the machine with
 * those of other test files: one file alone uses 8000.
 */
export const POD_HTTP_SERVER_SOURCE = `
const { createHash } = require('node:crypto');
const server = require('node:http').createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/back') return void request.pipe(response);
  if (path === '/moved') return void response.writeHead(302, { location: '/elsewhere' }).end();
  if (path === '/cookie') return void response.writeHead(200, { 'set-cookie': 'a=1; Path=/' }).end();
  if (path === '/never') return;
  if (path === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let count = 0;
    const timer = setInterval(() => response.write('data: ' + (count += 1) + '\\n\\n'), 20);
    return void response.on('close', () => clearInterval(timer));
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, pod: process.env.RUNPOD_POD_ID }));
});
server.on('upgrade', (request, socket, head) => {
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  let rest = head;
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 6 && rest.length >= 6 + (rest[1] & 127)) {
      const length = rest[1] & 127;
      const mask = rest.subarray(2, 6);
      const text = Buffer.from(rest.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]));
      if ((rest[0] & 15) === 8) return void socket.end(Buffer.from([0x88, 0]));
      const answer = Buffer.from(request.url + ': ' + text);
      socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]));
      rest = rest.subarray(6 + length);
    }
  });
});
server.listen(Number(process.env[process.env.LISTEN_AS ?? ''] ?? 8000), () => console.log('serving'));
`;
