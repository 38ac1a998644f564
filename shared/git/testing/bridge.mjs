// git starts this for an `ext::` address. It connects git's standard streams to the test's server.
// Arguments: path of the socket, service, name of the repository.
import { connect } from 'node:net';

const [path, service, repository] = process.argv.slice(2);
const socket = connect(path);
socket.write(`${JSON.stringify({ service, repository, protocol: process.env.GIT_PROTOCOL ?? '' })}\n`);
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('error', () => process.exit(1));
