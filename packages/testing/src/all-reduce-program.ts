/**
 * A small distributed job. Every node listens on the same port at its own address. Each brings its
 * number to the first node, gets the sum of all back, and passes a token to the next one in a ring.
 */
const PROGRAM = `
const net = require('node:net');
const { NODE_ADDR, NODE_RANK, NUM_NODES, PRIMARY_ADDR, PRIMARY_PORT } = process.env;
const [rank, size, ringPort] = [Number(NODE_RANK), Number(NUM_NODES), 7411];
const addressOf = (other) => PRIMARY_ADDR.replace(/\\d+$/, (last) => Number(last) + other);
const serve = (port, host, onText) => net.createServer((socket) => socket.on('error', () => socket.destroy()).on('data', (data) => onText(data.toString(), socket))).listen(port, host);
const send = (host, port, text, onAnswer) => {
  const socket = net.connect({ host, port }, () => socket.write(text));
  socket.on('error', () => setTimeout(send, 100, host, port, text, onAnswer)).on('data', (data) => onAnswer(data.toString()));
};
const nodes = [];
let sum = 0;
if (rank === 0) serve(Number(PRIMARY_PORT), PRIMARY_ADDR, (text, socket) => {
  sum += Number(text);
  if (nodes.push(socket) === size) for (const node of nodes) node.write(String(sum));
});
serve(ringPort, NODE_ADDR, (text, socket) => {
  console.log('token from', text);
  socket.end('thanks');
});
send(PRIMARY_ADDR, Number(PRIMARY_PORT), String(rank + 1), (answer) => console.log('sum', answer));
send(addressOf((rank + 1) % size), ringPort, String(rank), () => console.log('passed on'));
setInterval(() => undefined, 1000);
`;

/** The start command of a pod that runs it. */
export const ALL_REDUCE_COMMAND: readonly string[] = ['node', '-e', PROGRAM];
