'use strict';
// Makes Node 18 and 20 send http, https and fetch traffic through the proxy named in HTTP_PROXY and HTTPS_PROXY.
// Newer ones do so themselves. NODE_OPTIONS loads it into every process of a sandbox with a network, so a fault in
// here must not reach the program.

const settings = readSettings();
if (!settings) return;

// https and tls are loaded only when used: they would add 2 ms to the start of programs that make no requests.
const http = require('http');
const net = require('net');
const { Duplex } = require('stream');

const REPLY_LIMIT = 64 * 1024; // bytes of an answer to CONNECT that are read at most
const REFUSAL_WAIT = 1000; // ms to wait for the rest of a refusal's text
const CONNECT_WAIT = 30000; // ms that a silent proxy may take to answer CONNECT
const plainTargets = new WeakMap(); // socket to the proxy -> { proxy, origin } of the plain HTTP server behind it

// A byte stream to host:port through the proxy. It exists at once and connects on first use: agents get their socket
// synchronously, so timeouts and aborts work during CONNECT, and an agent with its own connection leaves it unused.
class Tunnel extends Duplex {
  raw = null;
  isOpen = false;
  heldWrite = null;
  reply = Buffer.alloc(0);

  constructor(proxy, host, port) {
    super({ allowHalfOpen: false });
    this.proxy = proxy;
    this.authority = authorityOf(host, port);
  }

  _read() {
    this.start();
    if (this.isOpen) this.raw.resume();
  }

  _write(chunk, encoding, done) {
    this.start();
    if (this.isOpen) this.raw.write(chunk, done);
    else this.heldWrite = () => this.raw.write(chunk, done);
  }

  _final(done) {
    if (this.isOpen) this.raw.end(() => done());
    else done();
  }

  _destroy(error, done) {
    this.raw?.destroy();
    done(error);
  }

  start() {
    if (this.raw) return;
    this.raw = connectToProxy(this.proxy, { timeout: CONNECT_WAIT });
    this.raw.on('data', (chunk) => (this.isOpen ? this.forward(chunk) : this.readReply(chunk)));
    this.raw.on('close', () => (this.isOpen ? this.push(null) : this.refuse('connection closed')));
    this.raw.on('timeout', () => this.isOpen || this.refuse('no answer in time'));
    this.raw.on('error', (error) => this.destroy(error));
    const login = authorizationLine(this.proxy);
    this.raw.write(`CONNECT ${this.authority} HTTP/1.1\r\nHost: ${this.authority}\r\n${login}\r\n`);
  }

  forward(chunk) {
    if (!this.push(chunk)) this.raw.pause();
  }

  readReply(chunk) {
    this.reply = Buffer.concat([this.reply, chunk]);
    const headEnd = this.reply.indexOf('\r\n\r\n');
    const head = this.reply.toString('latin1', 0, Math.max(headEnd, 0));
    if (/^HTTP\/1\.\d 2/.test(head)) return this.open(this.reply.subarray(headEnd + 4));
    if (this.reply.length > REPLY_LIMIT || isWhole(head, this.reply)) return this.refuse();
    if (head) this.raw.setTimeout(REFUSAL_WAIT);
  }

  open(rest) {
    this.isOpen = true;
    this.raw.setTimeout(0);
    if (rest.length) this.forward(rest);
    this.heldWrite?.();
    this.heldWrite = null;
  }

  refuse(reason) {
    const said = describeReply(this.reply) || reason;
    const error = new Error(`proxy ${this.proxy.host}:${this.proxy.port} refused CONNECT ${this.authority}: ${said}`);
    this.destroy(Object.assign(error, { code: 'ERR_PROXY_TUNNEL' }));
  }
}

for (const install of [proxyPlainHttp, proxyHttps, repairHttpsSentAsPlain, proxyFetch]) attempt(install);

function attempt(step) {
  try {
    step();
  } catch {} // what cannot be installed stays as Node made it
}

function readSettings() {
  const { versions, env } = process;
  const [major, minor] = versions.node.split('.').map(Number);
  if (major >= 24 || (major === 22 && minor >= 21) || versions.bun || versions.deno) return null;
  const forHttp = parseProxy(env.http_proxy || env.HTTP_PROXY);
  const forHttps = parseProxy(env.https_proxy || env.HTTPS_PROXY);
  const noProxy = (env.no_proxy || env.NO_PROXY || '').toLowerCase().split(/[\s,]+/).filter(Boolean);
  return forHttp || forHttps ? { forHttp, forHttps, noProxy } : null;
}

function parseProxy(text) {
  try {
    const { protocol, origin, hostname, port, username, password } = new URL(text.includes('://') ? text : `http://${text}`);
    if (protocol !== 'http:') return null;
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    const authorization = username || password ? `Basic ${login.toString('base64')}` : '';
    return { origin, host: bareName(hostname), port: Number(port) || 80, authorization };
  } catch {
    return null; // unset or not an address
  }
}

function bareName(host) {
  return String(host || 'localhost').toLowerCase().replace(/^\[|\]$/g, '');
}

function authorityOf(host, port) {
  const name = bareName(host);
  return `${net.isIPv6(name) ? `[${name}]` : name}:${port}`;
}

function authorizationLine(proxy) {
  return proxy.authorization && `Proxy-Authorization: ${proxy.authorization}\r\n`;
}

function proxyFor(protocol, host, port) {
  const direct = isProxy(host, port) || settings.noProxy.some((entry) => covers(entry, bareName(host), port));
  return direct ? null : protocol === 'https:' ? settings.forHttps : settings.forHttp;
}

// Libraries that read the proxy variables themselves connect to the proxy; their connections are left alone.
function isProxy(host, port) {
  const isThis = (proxy) => proxy?.host === bareName(host) && proxy.port === Number(port);
  return isThis(settings.forHttp) || isThis(settings.forHttps);
}

function covers(entry, name, port) {
  const [, host, onlyPort] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry) || [entry, entry];
  if (onlyPort && Number(onlyPort) !== Number(port)) return false;
  const wanted = bareName(host).replace(/^\*?\./, '');
  return wanted === '*' || name === wanted || (!net.isIP(name) && name.endsWith(`.${wanted}`));
}

function connectToProxy({ host, port }, { timeout, keepAlive, keepAliveInitialDelay }) {
  return net.connect({ host, port, noDelay: true, timeout, keepAlive, keepAliveInitialDelay });
}

function isWhole(head, reply) {
  const length = /^content-length:\s*(\d+)/im.exec(head);
  if (length) return reply.length >= head.length + 4 + Number(length[1]);
  return isChunked(head) && reply.subarray(-5).toString() === '0\r\n\r\n';
}

function isChunked(head) {
  return /^transfer-encoding:.*chunked/im.test(head);
}

function describeReply(reply) {
  const [head, ...parts] = reply.toString().split('\r\n\r\n');
  const text = parts.join('\r\n\r\n');
  const body = isChunked(head) ? text.replace(/(^|\r\n)[0-9a-f]+(;[^\r\n]*)?\r\n/gi, '') : text;
  return `${head.split('\r\n', 1)[0].replace(/^HTTP\/\S+ /, '')} ${body}`.trim().slice(0, 4000);
}

function proxyPlainHttp() {
  const { createConnection: connectDirectly } = http.Agent.prototype;
  http.Agent.prototype.createConnection = function createConnection(options, ...rest) {
    const port = Number(options?.port || 80);
    const proxy = options?.host && !options.path && proxyFor('http:', options.host, port); // path: a local socket
    if (!proxy) return connectDirectly.call(this, options, ...rest);
    const socket = connectToProxy(proxy, options);
    plainTargets.set(socket, { proxy, origin: `http://${authorityOf(options.host, port).replace(/:80$/, '')}` });
    return socket;
  };
  // The request line changes only once the socket is known to be ours: other agents and mocks keep theirs.
  const { onSocket: acceptSocket } = http.ClientRequest.prototype;
  http.ClientRequest.prototype.onSocket = function onSocket(socket, error) {
    const target = plainTargets.get(socket);
    if (target && this.method !== 'CONNECT' && this.path.startsWith('/')) useAbsoluteForm(this, target);
    return acceptSocket.call(this, socket, error);
  };
}

function useAbsoluteForm(request, { origin, proxy }) {
  const oldLine = `${request.method} ${request.path} HTTP/1.1\r\n`;
  request.path = origin + request.path;
  const header = request._header;
  if (!header && proxy.authorization) request.setHeader('Proxy-Authorization', proxy.authorization);
  if (!header) return;
  // The header is already written out, and perhaps queued together with the start of the body.
  const newLine = `${request.method} ${request.path} HTTP/1.1\r\n${authorizationLine(proxy)}`;
  const queued = request.outputData[0];
  request._header = newLine + header.slice(oldLine.length);
  if (String(queued?.data).startsWith(header)) queued.data = newLine + queued.data.slice(oldLine.length);
}

function proxyHttps() {
  const { createSocket: createPlainly } = http.Agent.prototype;
  http.Agent.prototype.createSocket = function createSocket(request, options, done) {
    // An agent passes the options of a closed socket on to a waiting request, then with our old tunnel in them.
    const taken = options.socketPath || this.options?.socket || (options.socket && !(options.socket instanceof Tunnel));
    const port = options.port || 443;
    const proxy = this.protocol === 'https:' && !taken && proxyFor('https:', options.host, port);
    if (!proxy) return createPlainly.call(this, request, options, done);
    const tunnel = new Tunnel(proxy, options.host, port);
    return createPlainly.call(this, request, { ...options, socket: tunnel }, (error, socket) => {
      if (socket && tunnel.listenerCount('data')) shareRef(socket, tunnel);
      done(error, socket);
    });
  };
}

// TLS over a JavaScript stream ignores unref, and an idle keep-alive socket would then keep the process running.
function shareRef(socket, tunnel) {
  for (const name of ['ref', 'unref']) {
    const value = () => (tunnel.raw?.[name](), socket);
    Object.defineProperty(socket, name, { value, configurable: true, writable: true });
  }
}

// Older axios versions send "GET https://..." in the clear to the proxy, which few proxies accept.
function repairHttpsSentAsPlain() {
  const { addRequest: addPlainly } = http.Agent.prototype;
  http.Agent.prototype.addRequest = function addRequest(request, options, ...rest) {
    const wrong = this.protocol === 'http:' && /^https:\/\//i.test(request.path) && !request._header;
    if (!wrong || !isProxy(options.host, options.port)) return addPlainly.call(this, request, options, ...rest);
    const { hostname, port, pathname, search } = new URL(request.path);
    const agent = require('https').globalAgent;
    request.removeHeader('Proxy-Authorization');
    Object.assign(request, { agent, path: pathname + search });
    return agent.addRequest(request, { ...options, host: bareName(hostname), port: Number(port) || 443, path: null });
  };
}

// Node's own fetch keeps doing everything but connecting: its dispatcher, which Node stores under a well-known symbol,
// is exchanged for one that goes through the proxy.
function proxyFetch() {
  const key = Symbol.for('undici.globalDispatcher.1');
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, 'fetch');
  const nodeFetch = descriptor?.value;
  if (typeof nodeFetch !== 'function') return;
  const exchangeDispatcher = () => {
    if (!globalThis[key]) nodeFetch('data:,').catch(() => {}); // loads undici without using the network
    // A ProxyAgent or MockAgent that the program set stays; an Agent connects directly, which cannot work here.
    if (globalThis[key]?.constructor.name === 'Agent') globalThis[key] = makeDispatcher(globalThis[key]);
  };
  const value = function fetch(input, init = undefined) {
    attempt(exchangeDispatcher);
    return Reflect.apply(nodeFetch, this, arguments);
  };
  Object.defineProperty(globalThis, 'fetch', { ...descriptor, value });
}

function makeDispatcher(direct) {
  const options = direct[Object.getOwnPropertySymbols(direct).find((symbol) => symbol.description === 'options')];
  class ProxyDispatcher extends direct.constructor {
    dispatch(request, handler) {
      const { protocol, hostname, host, port, origin } = new URL(request.origin);
      const proxy = proxyFor(protocol, hostname, port || (protocol === 'https:' ? 443 : 80));
      if (!proxy) return direct.dispatch(request, handler);
      if (protocol === 'https:') return super.dispatch(request, handler);
      const headers = addHeaders(request.headers, { host, 'proxy-authorization': proxy.authorization });
      return direct.dispatch({ ...request, origin: proxy.origin, path: origin + request.path, headers }, handler);
    }
  }
  return new ProxyDispatcher({ ...options, connect: (target, done) => connectForFetch(target, options?.connect, done) });
}

function addHeaders(headers, extra) {
  const added = Object.entries(extra).filter(([, value]) => value);
  if (Array.isArray(headers)) return [...headers, ...added.flat()];
  return { ...Object.fromEntries(added), ...(headers?.[Symbol.iterator] ? Object.fromEntries(headers) : headers) };
}

function connectForFetch({ hostname, port, servername }, tlsOptions, done) {
  const host = bareName(hostname);
  const tunnel = new Tunnel(settings.forHttps, host, port || 443);
  const name = servername || (net.isIP(host) ? '' : host);
  const socket = require('tls').connect({ ALPNProtocols: ['http/1.1'], ...tlsOptions, host, servername: name, socket: tunnel });
  shareRef(socket, tunnel);
  const settle = (error) => {
    done?.(error || null, error ? null : socket);
    done = null;
  };
  socket.once('secureConnect', () => settle()).on('error', settle);
}
