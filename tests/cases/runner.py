#!/usr/bin/env python3
"""Product-neutral case runner for servers that speak the OpenAI Responses API over a chat-completions backend.

runner.py --base-url http://127.0.0.1:8080/v1 --upstream-port 9700 --cases DIR [--only ID,ID] [--area A] [--json out.json]
See README.md beside this file for the case format and the expect language.
"""
import argparse, asyncio, base64, copy, glob, gzip, hashlib, json, math, os, re, socket, struct, sys, time, uuid, zlib
import aiohttp
from aiohttp import web

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TERMINAL = ('response.completed', 'response.failed', 'response.incomplete', 'response.cancelled')
MISSING = object()

# ----------------------------------------------------------------------------- paths, templates, operators
SEG = re.compile(r'\.?([^.\[\]]+)|\[([^\]]*)\]')

def get_path(obj, path):
    """a.b[0].c ; [-1] ; [key=value] -> list of matching elements ; [*] flattens one level ; .key on a list maps over it."""
    cur = obj
    for m in SEG.finditer(path):
        key, br = m.group(1), m.group(2)
        if key is not None:
            if isinstance(cur, dict):
                if key not in cur: return MISSING
                cur = cur[key]
            elif isinstance(cur, list):
                cur = [x[key] for x in cur if isinstance(x, dict) and key in x]
            else: return MISSING
        elif br == '*':
            if isinstance(cur, dict): cur = list(cur.values())
            elif isinstance(cur, list):
                if any(isinstance(x, list) for x in cur): cur = [y for x in cur for y in (x if isinstance(x, list) else [x])]
            else: return MISSING
        elif '=' in br:
            k, v = br.split('=', 1)
            if not isinstance(cur, list): return MISSING
            cur = [x for x in cur if isinstance(x, dict) and str(x.get(k)) == v]
        else:
            try: i = int(br)
            except ValueError: return MISSING
            if not isinstance(cur, list) or not -len(cur) <= i < len(cur): return MISSING
            cur = cur[i]
    return cur

def text_of(v):
    """Plain text of a chat message content (string or list of parts)."""
    if isinstance(v, str): return v
    if isinstance(v, list):
        out = []
        for x in v:
            if isinstance(x, str): out.append(x)
            elif isinstance(x, dict):
                if isinstance(x.get('text'), str): out.append(x['text'])
        return '\n'.join(out)
    return '' if v in (None, MISSING) else json.dumps(v)

def short(v, n=160):
    if v is MISSING: return '<missing>'
    s = v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str)
    s = s.encode('utf-8', 'backslashreplace').decode()
    return s if len(s) <= n else s[:n] + f'..({len(s)})'

def norm(v):
    """null is the same as absent, in objects."""
    if isinstance(v, dict): return {k: norm(x) for k, x in v.items() if x is not None}
    if isinstance(v, list): return [norm(x) for x in v]
    return v

OPS = {'equals', 'not_equals', 'contains', 'not_contains', 'matches', 'not_matches', 'exists', 'absent', 'type', 'len', 'gte', 'lte', 'in', 'json_equals', 'json_valid', 'json_type',
       'text_equals', 'text_contains', 'text_not_contains', 'starts_with', 'ends_with', 'unique', 'each', 'equals_norm', 'any', 'same_set', 'none'}

def typ(v):
    return 'null' if v is None else 'boolean' if isinstance(v, bool) else 'integer' if isinstance(v, int) else 'number' if isinstance(v, float) else 'string' if isinstance(v, str) else 'array' if isinstance(v, list) else 'object'

def ops_check(v, spec):
    """Returns None when all operators of spec hold for v, else a reason."""
    for op, want in spec.items():
        if op not in OPS: continue
        if op == 'exists':
            if (v is not MISSING) != bool(want): return f'exists={v is not MISSING}'
            continue
        if op == 'absent':
            if (v is MISSING or v is None) != bool(want): return f'should be absent, is {short(v)}'
            continue
        if op in ('text_equals', 'text_contains', 'text_not_contains'):
            t = text_of(v)
            for w in (want if isinstance(want, list) else [want]):
                if op == 'text_equals' and t != w: return f'text {short(t)!r} != {w!r}'
                if op == 'text_contains' and w not in t: return f'text {short(t)!r} lacks {w!r}'
                if op == 'text_not_contains' and w in t: return f'text {short(t)!r} holds {w!r}'
            continue
        if op == 'not_contains' and v is MISSING: continue
        if op == 'not_equals' and v is MISSING: continue
        if v is MISSING: return 'missing'
        if op == 'equals' and v != want: return f'{short(v)} != {short(want)}'
        if op == 'equals' and isinstance(v, bool) != isinstance(want, bool): return f'{short(v)} != {short(want)}'
        if op == 'equals_norm' and norm(v) != norm(want): return f'{short(v)} != {short(want)}'
        if op == 'not_equals' and v == want: return f'must differ from {short(want)}'
        if op == 'contains':
            for w in (want if isinstance(want, list) and isinstance(v, str) else [want]):
                if not isinstance(v, (str, list, dict)) or w not in v: return f'{short(v)} lacks {short(w)}'
        if op == 'not_contains':
            for w in (want if isinstance(want, list) and isinstance(v, str) else [want]):
                if isinstance(v, (str, list, dict)) and w in v: return f'{short(v)} holds {short(w)}'
        if op == 'matches' and not (isinstance(v, str) and re.search(want, v)): return f'{short(v)} !~ {want}'
        if op == 'not_matches' and isinstance(v, str) and re.search(want, v): return f'{short(v)} ~ {want}'
        if op == 'starts_with' and not (isinstance(v, str) and v.startswith(want)): return f'{short(v)} does not start with {want!r}'
        if op == 'ends_with' and not (isinstance(v, str) and v.endswith(want)): return f'{short(v)} does not end with {want!r}'
        if op == 'type':
            t = typ(v); w = want if isinstance(want, list) else [want]
            if t not in w and not (t == 'integer' and 'number' in w): return f'type {t}, want {want}'
        if op == 'len':
            try: n = len(v)
            except TypeError: return f'{short(v)} has no length'
            if isinstance(want, dict):
                r = ops_check(n, want)
                if r: return 'len ' + r
            elif n != want: return f'len {n} != {want}: {short(v)}'
        if op == 'gte' and not (isinstance(v, (int, float)) and v >= want): return f'{short(v)} < {want}'
        if op == 'lte' and not (isinstance(v, (int, float)) and v <= want): return f'{short(v)} > {want}'
        if op == 'in' and v not in want: return f'{short(v)} not in {short(want)}'
        if op in ('json_equals', 'json_valid', 'json_type'):
            try: j = json.loads(v) if isinstance(v, str) else 1 / 0
            except Exception: return f'not a JSON string: {short(v)}'
            if op == 'json_equals' and j != want: return f'JSON {short(v)} != {short(want)}'
            if op == 'json_type' and typ(j) != want: return f'JSON type {typ(j)}, want {want}'
        if op == 'unique':
            k = [json.dumps(x, sort_keys=True) for x in v] if isinstance(v, list) else []
            if len(k) != len(set(k)): return f'not unique: {short(v)}'
        if op == 'same_set':
            if not isinstance(v, list) or sorted(map(str, v)) != sorted(map(str, want)): return f'{short(v)} is not the set {short(want)}'
        if op == 'each':
            if not isinstance(v, list): return f'{short(v)} is no list'
            for i, x in enumerate(v):
                r = ops_check(get_path(x, want['path']) if 'path' in want else x, want)
                if r: return f'[{i}] {r}'
        if op in ('any', 'none'):
            if not isinstance(v, list): return f'{short(v)} is no list'
            hit = any(ops_check(get_path(x, want['path']) if 'path' in want else x, want) is None for x in v)
            if hit != (op == 'any'): return f'{op} element with {short(want)}: {short(v)}'
    return None

TPL = re.compile(r'\{\{([^{}]+)\}\}')

class Tpl:
    def __init__(self, run): self.run = run
    def lookup(self, e, up=None):
        r = self.run
        if e == 'model': return r.client_model
        if e == 'mcp': return r.eng.mcp_url(r.case['id'])
        if e.startswith('mcp:'): return r.eng.mcp_url(r.case['id'], e[4:])
        if e.startswith('rep:'):
            s, n = e[4:].rsplit(':', 1); return s * int(n)
        if e.startswith('flip:'):   # the same string with one character in the middle changed
            v = self.lookup(e[5:], up)
            if not isinstance(v, str) or not v: return MISSING
            i = len(v) // 2; return v[:i] + ('B' if v[i] != 'B' else 'C') + v[i + 1:]
        if e == 'uuid': return uuid.uuid4().hex
        if e == 'run': return r.eng.run_id
        if e.startswith('up:'): return get_path(up or {}, e[3:])
        if e.startswith('tool:'):
            for t in (up or {}).get('tools') or []:
                if e[5:] in json.dumps(t, ensure_ascii=False): return t.get('function', t).get('name', MISSING)
            return MISSING
        name, _, rest = e.partition('.')
        m = re.match(r'([^\[]+)(.*)', name)
        base = m.group(1); rest2 = (m.group(2) + ('.' + rest if rest else '')) if rest or m.group(2) else ''
        if base not in r.ctx: return MISSING
        return get_path(r.ctx[base], rest2) if rest2 else r.ctx[base]
    def sub(self, o, up=None):
        if isinstance(o, str):
            if '{{' not in o: return o
            m = TPL.fullmatch(o)
            if m:
                v = self.lookup(m.group(1).strip(), up)
                if v is MISSING:
                    self.run.unresolved.append(m.group(1)); return '<unresolved:%s>' % m.group(1)
                return v
            def f(m):
                v = self.lookup(m.group(1).strip(), up)
                if v is MISSING:
                    self.run.unresolved.append(m.group(1)); return '<unresolved:%s>' % m.group(1)
                return v if isinstance(v, str) else json.dumps(v)
            return TPL.sub(f, o)
        if isinstance(o, list):
            out = []
            for x in o:
                if isinstance(x, dict) and '$splice' in x and len(x) == 1:
                    v = self.sub(x['$splice'], up)
                    if isinstance(v, list): out += v
                else: out.append(self.sub(x, up))
            return out
        if isinstance(o, dict): return {k: self.sub(v, up) for k, v in o.items()}
        return o

# ----------------------------------------------------------------------------- scripted upstream
def completion_chunks(c, include_usage=True):
    base = {'id': c.get('id', 'chatcmpl-u1'), 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm'}
    def ch(d, fin=None): return {**base, 'choices': [{'index': 0, 'delta': d, 'finish_reason': fin}]}
    out = [ch({'role': 'assistant', 'content': ''})]
    for k in ('reasoning_content', 'reasoning', 'reasoning_details'):
        if c.get(k): out.append(ch({k: c[k]}))
    t = c.get('content')
    if t:
        h = max(1, len(t) // 2)
        out += [ch({'content': t[:h]})] + ([ch({'content': t[h:]})] if t[h:] else [])
    for i, tc in enumerate(c.get('tool_calls') or []):
        out.append(ch({'tool_calls': [{'index': i, **tc}]}))
    out.append(ch({}, c.get('finish', 'tool_calls' if c.get('tool_calls') else 'stop')))
    u = c.get('usage', MISSING)
    if u is MISSING: u = {'prompt_tokens': 5, 'completion_tokens': 2, 'total_tokens': 7}
    if u is not None: out.append({**base, 'choices': [], 'usage': u})
    return out + ['[DONE]']

def completion_json(c):
    msg = {'role': 'assistant', 'content': c.get('content')}
    for k in ('reasoning_content', 'reasoning', 'reasoning_details', 'tool_calls'):
        if c.get(k): msg[k] = c[k]
    o = {'id': c.get('id', 'chatcmpl-u1'), 'object': 'chat.completion', 'created': 1, 'model': 'm',
         'choices': [{'index': 0, 'message': msg, 'finish_reason': c.get('finish', 'tool_calls' if c.get('tool_calls') else 'stop')}]}
    u = c.get('usage', MISSING)
    if u is MISSING: u = {'prompt_tokens': 5, 'completion_tokens': 2, 'total_tokens': 7}
    if u is not None: o['usage'] = u
    return o

def embed(text, dim):
    v = [0.0] * dim
    for w in re.findall(r'\w+', str(text).lower()) or ['_']:
        h = hashlib.sha256(w.encode()).digest()
        for k in range(4):
            i = int.from_bytes(h[4 * k:4 * k + 4], 'big')
            v[i % dim] += 1.0 if (i >> 31) & 1 else 0.7
    n = math.sqrt(sum(x * x for x in v)) or 1.0
    return [x / n for x in v]

REASON = {200: 'OK', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 413: 'Payload Too Large', 429: 'Too Many Requests', 500: 'Internal Server Error', 502: 'Bad Gateway', 503: 'Service Unavailable'}

class Upstream:
    def __init__(self, eng): self.eng = eng
    async def start(self, port):
        self.srv = await asyncio.start_server(self.conn, '127.0.0.1', port, limit=2 ** 20)
    async def conn(self, rd, wr):
        sock = wr.get_extra_info('socket')
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self.handle(rd, wr, sock)
        except (ConnectionError, asyncio.IncompleteReadError, OSError, asyncio.CancelledError): pass
        except Exception as e:
            self.eng.notes.append(f'upstream handler: {type(e).__name__}: {e}')
            if self.eng.verbose: import traceback; traceback.print_exc()
        finally:
            try: wr.close()
            except Exception: pass
    async def handle(self, rd, wr, sock):
        head = b''
        while True:
            l = await rd.readline()
            if not l: return
            head += l
            if l in (b'\r\n', b'\n'): break
        lines = head.decode('latin-1').split('\r\n')
        try: method, path, _ = lines[0].split(' ', 2)
        except ValueError: return
        H = {}
        for l in lines[1:]:
            if ':' in l:
                k, v = l.split(':', 1); H[k.strip().lower()] = v.strip()
        if H.get('expect', '').lower() == '100-continue':
            wr.write(b'HTTP/1.1 100 Continue\r\n\r\n'); await wr.drain()
        body = b''
        if 'chunked' in H.get('transfer-encoding', '').lower():
            while True:
                n = int((await rd.readline()).split(b';')[0].strip() or b'0', 16)
                if n == 0:
                    await rd.readline(); break
                body += await rd.readexactly(n); await rd.readexactly(2)
        elif H.get('content-length'): body = await rd.readexactly(int(H['content-length']))
        path = path.split('?')[0]
        if method == 'GET' and path.endswith('/models'):
            ms = sorted(self.eng.model_names())
            return await self.simple(wr, 200, {'object': 'list', 'data': [{'id': m, 'object': 'model', 'created': 1, 'owned_by': 'script', **({'max_model_len': 100000, 'context_length': 100000, 'context_window': 100000})} for m in ms + self.eng.embed_models]})
        if method == 'GET': return await self.simple(wr, 200, {'status': 'ok', 'version': '0'})
        try: j = json.loads(body or b'{}')
        except Exception as e:
            self.eng.notes.append(f'upstream got invalid JSON: {e}'); j = {}
        if not isinstance(j, dict): j = {}
        if path.endswith('/embeddings'): return await self.embeddings(wr, j, H)
        if not path.endswith('/chat/completions'):
            self.eng.notes.append(f'upstream got POST {path}')
            return await self.simple(wr, 404, {'error': {'message': f'no such path {path}', 'type': 'invalid_request_error', 'code': 'not_found', 'param': None}})
        run = self.eng.find_run(j.get('model'))
        if run is None:
            self.eng.notes.append(f'no case for {path} model {j.get("model")!r}')
            return await self.simple(wr, 404, {'error': {'message': f'script: no case for model {j.get("model")!r}', 'type': 'invalid_request_error', 'code': 'model_not_found', 'param': None}})
        await self.answer(run, rd, wr, sock, path, H, j)
    async def simple(self, wr, st, j, headers=None):
        b = json.dumps(j).encode() if not isinstance(j, (bytes, str)) else (j if isinstance(j, bytes) else j.encode())
        h = {'content-type': 'application/json', **(headers or {})}
        wr.write((f'HTTP/1.1 {st} {REASON.get(st, "X")}\r\n' + ''.join(f'{k}: {v}\r\n' for k, v in h.items()) + f'content-length: {len(b)}\r\nconnection: close\r\n\r\n').encode('latin-1') + b)
        await wr.drain()
    async def embeddings(self, wr, j, H):
        run = None
        for r in self.eng.active.values():
            if r.case.get('embeddings'): run = r
        inp = j.get('input')
        inp = inp if isinstance(inp, list) and not (inp and isinstance(inp[0], int)) else [inp]
        m = re.search(r'-(\d{2,4})$', str(j.get('model') or ''))
        dim = int(j.get('dimensions') or (m.group(1) if m and int(m.group(1)) >= 64 else 0) or self.eng.args.embed_dim)
        spec = (run.case['embeddings'] if run else {}) or {}
        self.eng.embed_calls += 1
        st = None
        for f in spec.get('faults', []):
            if ('every' in f and self.eng.embed_calls % f['every'] == 0) or f.get('call') == self.eng.embed_calls: st = f['status']
        if st: return await self.simple(wr, st, {'error': {'message': 'embedding backend busy', 'type': 'x', 'code': None}})
        data = []
        for i, t in enumerate(inp):
            v = embed(t, dim)
            if j.get('encoding_format') == 'base64': v = base64.b64encode(struct.pack('<%df' % dim, *v)).decode()
            data.append({'object': 'embedding', 'index': i, 'embedding': v})
        if spec.get('drop_half'): data = data[:len(data) // 2]
        await self.simple(wr, 200, {'object': 'list', 'model': j.get('model'), 'data': data, 'usage': {'prompt_tokens': 1, 'total_tokens': 1}})
    async def answer(self, run, rd, wr, sock, path, H, j):
        rec = {'n': len(run.calls) + 1, 't': time.monotonic(), 'path': path, 'headers': H, 'body': j, 'closed_at': None, 'finished': False}
        run.calls.append(rec)
        gone = asyncio.Event()
        async def watch():
            try:
                while True:
                    b = await rd.read(1024)
                    if not b: break
            except Exception: pass
            if not rec['finished']: rec['closed_at'] = time.monotonic()
            gone.set()
        wt = asyncio.create_task(watch())
        async def sleep(ms):
            try: await asyncio.wait_for(gone.wait(), ms / 1000)
            except asyncio.TimeoutError: return
            raise ConnectionResetError('peer gone')
        try:
            ups = run.case.get('upstream') or []
            i = rec['n'] - 1
            if i < len(ups): a = ups[i]
            elif ups and isinstance(ups[-1], dict) and ups[-1].get('repeat'): a = ups[-1]
            else:
                run.extra_calls += 1
                return await self.simple(wr, 500, {'error': {'message': 'script exhausted: unexpected upstream call %d' % rec['n'], 'type': 'server_error', 'code': 'script_exhausted'}})
            if 'when' in a:  # pick by a property of the request
                def subject(x):
                    v = get_path(j, x['path']) if 'path' in x else j
                    return json.dumps(v, ensure_ascii=False) if (x.get('as_json') or 'path' not in x) and v is not MISSING else v
                hit = next((x['answer'] for x in a['when'] if ops_check(subject(x), x) is None), None)
                rec['when_hit'] = hit is not None
                a = hit if hit is not None else a.get('else')
            a = run.tpl.sub(copy.deepcopy(a), up=j)
            stream = j.get('stream') is True
            if 'completion' in a:
                c = a['completion']
                if stream: a = {**a, 'sse': completion_chunks(c)}
                else: a = {**a, 'json': completion_json(c)}
            st = a.get('status', 200)
            await_ms = a.get('delay_headers_ms', a.get('delay_ms', 0))
            if await_ms: await sleep(await_ms)
            hs = {k.lower(): v for k, v in (a.get('headers') or {}).items()}
            if 'json' in a and 'sse' not in a:
                if a.get('gzip'):
                    hs['content-encoding'] = 'gzip'
                    rec['finished'] = True
                    return await self.simple(wr, st, gzip.compress(json.dumps(a['json']).encode()), {'content-type': 'application/json', **hs})
                await self.simple(wr, st, a['json'], {'content-type': 'application/json', **hs}); rec['finished'] = True; return
            if 'text' in a:
                await self.simple(wr, st, a['text'].encode(), {'content-type': 'text/html', **hs}); rec['finished'] = True; return
            framing = a.get('framing', 'eof' if 'raw' in a else 'chunked')
            hs.setdefault('content-type', 'text/event-stream')
            head = f'HTTP/1.1 {st} {REASON.get(st, "X")}\r\n' + ''.join(f'{k}: {v}\r\n' for k, v in hs.items())
            head += ('transfer-encoding: chunked\r\n' if framing == 'chunked' else '') + 'connection: close\r\n\r\n'
            wr.write(head.encode('latin-1')); await wr.drain()
            async def put(b):
                if gone.is_set(): raise ConnectionResetError('peer gone')
                if not b: return
                wr.write((b'%x\r\n' % len(b) + b + b'\r\n') if framing == 'chunked' else b)
                await wr.drain()
            if 'raw' in a:
                for w in a['raw']:
                    if 'sleep_ms' in w: await sleep(w['sleep_ms'])
                    elif 'hex' in w: await put(bytes.fromhex(w['hex']))
                    elif 'each_byte_of' in w:
                        for k in w['each_byte_of'].encode('utf-8', 'surrogatepass'): await put(bytes([k])); await asyncio.sleep(0.002)   # a pause, or the kernel joins the writes
                    else: await put(w['text'].encode('utf-8', 'surrogatepass'))
                    if 'sleep_ms' not in w: await asyncio.sleep(0)
            elif 'gzip_sse' in a:
                z = zlib.compressobj(6, zlib.DEFLATED, 31)
                for x in a['gzip_sse']:
                    await put(z.compress(('data: ' + (x if isinstance(x, str) else json.dumps(x)) + '\n\n').encode()) + z.flush(zlib.Z_SYNC_FLUSH)); await sleep(30)
                await put(z.flush())
            else:
                gap = a.get('gap_ms', 0)
                for x in a.get('sse', []):
                    if isinstance(x, dict) and 'sleep_ms' in x and len(x) == 1: await sleep(x['sleep_ms']); continue
                    if isinstance(x, dict) and 'repeat_chunk' in x:
                        for _ in range(x['n']):
                            await put(('data: ' + json.dumps(x['repeat_chunk']) + '\n\n').encode()); await sleep(x.get('every_ms', 1))
                        continue
                    if isinstance(x, dict) and 'comment' in x and len(x) == 1: await put((': ' + x['comment'] + '\n\n').encode()); continue
                    if isinstance(x, dict) and 'line' in x and len(x) == 1: await put((x['line'] + '\n').encode()); continue
                    await put(('data: ' + (x if isinstance(x, str) else json.dumps(x)) + '\n\n').encode())
                    if gap: await sleep(gap)
            end = a.get('end', 'clean_close')
            if end == 'reset':
                await sleep(120)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                rec['finished'] = True
                wr.transport.abort(); return
            if end == 'cut':   # FIN without the last chunk
                rec['finished'] = True; return
            rec['finished'] = True
            if framing == 'chunked': wr.write(b'0\r\n\r\n')
            await wr.drain()
        finally:
            try:
                if rec['finished'] and not wr.transport.is_closing():
                    try: wr.write_eof()
                    except Exception: pass
                    try: await asyncio.wait_for(gone.wait(), 1)
                    except asyncio.TimeoutError: pass
            except Exception: pass
            wt.cancel()

# ----------------------------------------------------------------------------- scripted MCP server
class Mcp:
    def __init__(self, eng): self.eng = eng; self.sse_queues = {}
    async def start(self, port):
        app = web.Application(client_max_size=2 ** 26)
        app.router.add_route('*', '/mcp/{tail:.*}', self.handle)
        self.r = web.AppRunner(app, access_log=None); await self.r.setup()
        await web.TCPSite(self.r, '127.0.0.1', port).start()
    async def handle(self, q):
        parts = q.match_info['tail'].strip('/').split('/')
        run = self.eng.active_by_id.get(parts[0])
        if run is None: return web.json_response({'error': 'no such case'}, status=404)
        label = parts[1] if len(parts) > 1 and parts[1] != 'messages' else 's'
        m = run.case.get('mcp') or {}
        cfg = (m.get('servers') or {}).get(label) if 'servers' in m else m
        cfg = cfg or {}
        st = run.mcp_state.setdefault(label, {'sessions': {}, 'n': {}, 'next': 1})
        body = None
        if q.method == 'POST':
            try: body = await q.json()
            except Exception: body = {}
        msg = body[0] if isinstance(body, list) and body else body if isinstance(body, dict) else {}
        meth = msg.get('method') if q.method == 'POST' else q.method
        rec = {'label': label, 'http': q.method, 'method': meth, 'params': msg.get('params'), 'headers': {k.lower(): v for k, v in q.headers.items()}, 'session': q.headers.get('mcp-session-id'), 't': time.monotonic(), 'path': q.path}
        run.mcp_calls.append(rec)
        st['n'][meth] = st['n'].get(meth, 0) + 1; n = st['n'][meth]
        rule = next((r for r in cfg.get('script', []) if r['on'] in (meth, 'POST' if q.method == 'POST' else meth) and r.get('n', n) == n and (r.get('from') is None or n >= r['from'])), None)
        rid = msg.get('id')
        legacy = cfg.get('legacy_sse')
        if rule:
            rule = run.tpl.sub(copy.deepcopy(rule))
            if rule.get('delay_ms'): await asyncio.sleep(rule['delay_ms'] / 1000)
            if rule.get('kill_session'): st['sessions'] = {k: False for k in st['sessions']}
            if 'error' in rule: return self.reply(cfg, {'jsonrpc': '2.0', 'id': rid, 'error': rule['error']}, rule)
            if 'result' in rule: return self.reply(cfg, {'jsonrpc': '2.0', 'id': rid, 'result': rule['result']}, rule)
            if 'sse' in rule:
                return web.Response(status=rule.get('status', 200), text=''.join('data: ' + (x if isinstance(x, str) else json.dumps(x)) + '\n\n' for x in rule['sse']), content_type='text/event-stream')
            if 'json' in rule: return web.json_response(rule['json'], status=rule.get('status', 200), headers=rule.get('headers'))
            if 'status' in rule: return web.Response(status=rule['status'], text=rule.get('text', ''), headers=rule.get('headers'))
        if q.method == 'GET':
            if legacy: return await self.legacy_get(q, run, cfg, label)
            return web.Response(status=cfg.get('get_status', 405), text='')
        if q.method == 'DELETE': return web.Response(status=200)
        if legacy and parts[-1] != 'messages': return web.Response(status=405, text='Method Not Allowed')
        if meth == 'initialize':
            sid = f's{st["next"]}'; st['next'] += 1; st['sessions'][sid] = True
            res = {'protocolVersion': (msg.get('params') or {}).get('protocolVersion', '2025-03-26'), 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'script', 'version': '1'}}
            return await self.out(q, run, cfg, legacy, parts, {'jsonrpc': '2.0', 'id': rid, 'result': res}, {} if cfg.get('no_session') else {'Mcp-Session-Id': sid})
        if not legacy and not cfg.get('no_session') and rec['session'] is not None and st['sessions'].get(rec['session']) is False:
            return web.Response(status=404, text='session not found')
        if rid is None: return web.Response(status=202)
        if meth == 'tools/list':
            pages = cfg.get('pages')
            if pages:
                c = (msg.get('params') or {}).get('cursor'); i = int(c[1:]) if c else 0
                res = {'tools': pages[i], **({'nextCursor': f'p{i + 1}'} if i + 1 < len(pages) else {})}
            else: res = {'tools': cfg.get('tools', [])}
        elif meth == 'tools/call':
            name = (msg.get('params') or {}).get('name')
            by = cfg.get('call_result_by_name') or {}
            crs = cfg.get('call_results')
            res = by.get(name) or (crs[min(n, len(crs)) - 1] if crs else None) or cfg.get('call_result') or {'content': [{'type': 'text', 'text': 'pong'}]}
            res = run.tpl.sub(copy.deepcopy(res))
            if cfg.get('call_delay_ms'): await asyncio.sleep(cfg['call_delay_ms'] / 1000)
        elif meth == 'ping': res = {}
        else:
            return await self.out(q, run, cfg, legacy, parts, {'jsonrpc': '2.0', 'id': rid, 'error': {'code': -32601, 'message': 'Method not found'}}, {})
        return await self.out(q, run, cfg, legacy, parts, {'jsonrpc': '2.0', 'id': rid, 'result': run.tpl.sub(copy.deepcopy(res))}, {})
    async def out(self, q, run, cfg, legacy, parts, obj, headers):
        if legacy:
            qu = self.sse_queues.get(run.case['id'])
            if qu: await qu.put(obj)
            return web.Response(status=202, text='Accepted')
        return self.reply(cfg, obj, {'headers': headers})
    def reply(self, cfg, obj, rule):
        mode = cfg.get('reply', 'json'); st = rule.get('status', 200); h = rule.get('headers')
        if mode == 'json': return web.json_response(obj, status=st, headers=h)
        t = ''
        if mode == 'sse+notification': t += 'event: message\ndata: ' + json.dumps({'jsonrpc': '2.0', 'method': 'notifications/message', 'params': {'level': 'info', 'data': 'working'}}) + '\n\n'
        t += 'event: message\ndata: ' + json.dumps(obj) + '\n\n'
        return web.Response(status=st, text=t, headers=h, content_type='text/event-stream')
    async def legacy_get(self, q, run, cfg, label):
        r = web.StreamResponse(headers={'content-type': 'text/event-stream'})
        await r.prepare(q)
        qu = self.sse_queues[run.case['id']] = asyncio.Queue()
        await r.write(f'event: endpoint\r\ndata: /mcp/{run.case["id"]}/messages?sid=1\r\n\r\n'.encode())
        try:
            while True:
                o = await qu.get()
                await r.write(('event: message\r\ndata: ' + json.dumps(o) + '\r\n\r\n').encode())
        except (ConnectionError, asyncio.CancelledError): pass
        return r

# ----------------------------------------------------------------------------- client side
class SseParser:
    def __init__(self): self.buf = b''; self.ev = None; self.data = []; self.events = []; self.comments = []; self.bad = []; self.done_marker = 0; self.after_done = 0
    def feed(self, b, t):
        self.buf += b
        while True:
            m = re.search(rb'\r\n|\n|\r(?!$)', self.buf)
            if not m: return
            line, self.buf = self.buf[:m.start()], self.buf[m.end():]
            try: s = line.decode('utf-8')
            except UnicodeDecodeError: self.bad.append('invalid UTF-8 in stream'); s = line.decode('utf-8', 'replace')
            if s == '':
                if self.data:
                    d = '\n'.join(self.data)
                    if d == '[DONE]': self.done_marker += 1
                    else:
                        try: j = json.loads(d)
                        except Exception: self.bad.append('data line is not JSON: ' + d[:80]); j = None
                        if j is not None:
                            if self.done_marker: self.after_done += 1
                            self.events.append({'t': t, 'event': self.ev, 'data': j})
                self.ev = None; self.data = []
            elif s.startswith(':'): self.comments.append(t)
            else:
                k, _, v = s.partition(':'); v = v[1:] if v.startswith(' ') else v
                if k == 'data': self.data.append(v)
                elif k == 'event': self.ev = v

class Result:
    def __init__(self): self.status = None; self.headers = {}; self.raw = b''; self.json = None; self.events = []; self.evt = []; self.sse = None; self.error = None; self.t0 = self.t1 = 0; self.closed_at = None
    @property
    def is_sse(self): return self.sse is not None
    def terminal(self):
        for e in reversed(self.events):
            if isinstance(e, dict) and e.get('type') in TERMINAL: return e
        for e in reversed(self.events):
            if isinstance(e, dict) and (e.get('type') == 'error' or 'error' in e): return e
        return None
    def final(self):
        if self.is_sse:
            t = self.terminal()
            if t is None: return {}
            return t.get('response') if isinstance(t.get('response'), dict) else t
        return self.json if self.json is not None else {}
    def error_obj(self):
        """the error object, wherever the server put it"""
        if self.is_sse:
            t = self.terminal()
            if not t: return None
            if isinstance(t.get('response'), dict): return t['response'].get('error')
            return t.get('error') if isinstance(t.get('error'), dict) else t
        return self.json.get('error') if isinstance(self.json, dict) else None

def out_text(resp):
    return ''.join(p.get('text') or '' for i in (resp.get('output') or []) if isinstance(i, dict) and i.get('type') == 'message' and isinstance(i.get('content'), list) for p in i['content'] if isinstance(p, dict) and p.get('type') == 'output_text')
def reasoning_of_item(i):
    c = ''.join(p.get('text') or '' for p in (i.get('content') or []) if isinstance(p, dict))
    return c or ''.join(p.get('text') or '' for p in (i.get('summary') or []) if isinstance(p, dict))
def reasoning_text(resp): return ''.join(reasoning_of_item(i) for i in (resp.get('output') or []) if isinstance(i, dict) and i.get('type') == 'reasoning')

def lifecycle(res, strict=False, resumed=False):
    """Generic well-formedness of one event stream. Returns a list of problems."""
    P = []
    E = res.events
    if res.sse.bad: P += res.sse.bad[:3]
    if not E: return P + ['no events']
    def bad(s):
        if s not in P: P.append(s)
    if not resumed and E[0].get('type') != 'response.created': bad(f"first event is {E[0].get('type')}, not response.created")
    seqs = [e.get('sequence_number') for e in E]
    if any(not isinstance(s, int) or isinstance(s, bool) for s in seqs): bad(f"sequence_number missing on {[e.get('type') for e, s in zip(E, seqs) if not isinstance(s, int)][:3]}")
    else:
        base = seqs[0] if resumed else 0
        if seqs != list(range(base, base + len(seqs))): bad(f'sequence_number not 0,1,2..: {seqs[:12]}')
    for w, e in zip(res.evt, E):
        if w['event'] is not None and w['event'] != e.get('type'): bad(f"event line {w['event']} != type {e.get('type')}")
        if not isinstance(e.get('type'), str): bad('event without type: ' + short(e, 80))
    term = [i for i, e in enumerate(E) if e.get('type') in TERMINAL]
    errs = [i for i, e in enumerate(E) if e.get('type') == 'error']
    if len(term) > 1: bad(f'{len(term)} terminal events')
    if not term and not errs: bad('no terminal event')
    last = term[-1] if term else (errs[-1] if errs else None)
    if last is not None and last != len(E) - 1: bad(f"events after the terminal event: {[e.get('type') for e in E[last + 1:]][:3]}")
    if res.sse.after_done: bad('events after [DONE]')
    if res.sse.done_marker > 1: bad('[DONE] more than once')
    rids = {e['response'].get('id') for e in E if isinstance(e.get('response'), dict)}
    if len(rids) > 1: bad(f'response id changes: {sorted(map(str, rids))[:3]}')
    items = {}      # output_index -> dict
    if resumed: return P
    for e in E:
        t = e.get('type') or ''
        if t == 'response.created':
            if isinstance(e.get('response'), dict) and e['response'].get('status') not in ('in_progress', 'queued'): bad(f"created with status {e['response'].get('status')}")
        if t in TERMINAL:
            r = e.get('response')
            if not isinstance(r, dict): bad('terminal event without response'); continue
            if r.get('status') != t.split('.')[1]: bad(f"{t} with status {r.get('status')}")
            continue
        oi = e.get('output_index')
        if t == 'response.output_item.added':
            it = e.get('item') or {}
            if not isinstance(oi, int): bad('output_item.added without output_index'); continue
            if oi in items: bad(f'output_index {oi} announced twice'); continue
            if oi != len(items): bad(f'output_index {oi} announced, expected {len(items)}')
            if not it.get('id'): bad(f"item {it.get('type')} added without id")
            elif any(x['id'] == it['id'] for x in items.values()): bad('item id used twice: ' + str(it['id']))
            items[oi] = {'id': it.get('id'), 'type': it.get('type'), 'item': it, 'parts': {}, 'sparts': {}, 'acc': {}, 'done': None, 'argd': None}
            continue
        if t == 'response.output_item.done':
            it = e.get('item') or {}
            x = items.get(oi)
            if x is None: bad(f"output_item.done for unannounced output_index {oi} ({it.get('type')})"); continue
            if x['done'] is not None: bad(f'output_item.done twice for output_index {oi}'); continue
            x['done'] = it
            if it.get('id') != x['id']: bad(f"item id changes at output_index {oi}: {x['id']} -> {it.get('id')}")
            if it.get('type') != x['type']: bad(f"item type changes: {x['type']} -> {it.get('type')}")
            for ci, p in x['parts'].items():
                if not p['done']: bad(f"content part {oi}/{ci} not closed before output_item.done")
                c = it.get('content') or []
                if ci < len(c) and isinstance(c[ci], dict):
                    tx = c[ci].get('text', c[ci].get('refusal'))
                    if p['acc'] is not None and tx is not None and tx != p['acc']: bad(f"item.done text {short(tx, 60)!r} != deltas {short(p['acc'], 60)!r}")
                elif x['type'] in ('message',): bad(f'item.done lacks content part {ci}')
            if x['type'] == 'message' and len(it.get('content') or []) != len(x['parts']): bad(f"message item has {len(it.get('content') or [])} parts, {len(x['parts'])} announced")
            for k, f in (('function_call', 'arguments'), ('mcp_call', 'arguments'), ('custom_tool_call', 'input')):
                if x['type'] == k:
                    if x['acc'].get(f) and it.get(f) != x['acc'][f]: bad(f"{k}.{f} {short(it.get(f), 60)!r} != deltas {short(x['acc'][f], 60)!r}")
                    if x['argd'] is None and k != 'mcp_call': bad(f'{k} without its {f}.done event')
                    elif x['argd'] is not None and it.get(f) != x['argd']: bad(f"{k}.{f} in item.done differs from the .done event")
            for si, p in x['sparts'].items():
                if not p['done']: bad(f'summary part {oi}/{si} not closed')
            continue
        if oi is None or t in ('error',): continue
        x = items.get(oi)
        if x is None: bad(f'{t} for unannounced output_index {oi}'); continue
        if x['done'] is not None: bad(f'{t} after output_item.done of output_index {oi}')
        iid = e.get('item_id')
        if iid is not None and iid != x['id']: bad(f"{t} item_id {iid} != {x['id']}")
        if iid is None and t.startswith('response.') : bad(f'{t} without item_id')
        ci = e.get('content_index')
        if t == 'response.content_part.added':
            if ci != len(x['parts']): bad(f"content_index {ci} added, expected {len(x['parts'])} ({x['type']})")
            x['parts'][ci] = {'acc': '', 'done': False, 'td': False, 'type': (e.get('part') or {}).get('type')}
            if (e.get('part') or {}).get('text') not in (None, ''): bad('content_part.added carries text')
        elif t in ('response.output_text.delta', 'response.refusal.delta', 'response.reasoning_text.delta'):
            p = x['parts'].get(ci)
            if p is None:
                if t == 'response.reasoning_text.delta': p = x['parts'][ci] = {'acc': '', 'done': True, 'td': False, 'type': 'reasoning_text'}
                else: bad(f'{t} for unannounced part {oi}/{ci}'); continue
            elif p['done'] and p['type'] != 'reasoning_text': bad(f'{t} after content_part.done')
            if not isinstance(e.get('delta'), str): bad(f'{t} delta is no string'); continue
            p['acc'] += e['delta']
        elif t in ('response.output_text.done', 'response.refusal.done', 'response.reasoning_text.done'):
            p = x['parts'].get(ci)
            if p is None: bad(f'{t} for unannounced part {oi}/{ci}'); continue
            if p['td']: bad(f'{t} twice')
            p['td'] = True
            tx = e.get('text', e.get('refusal'))
            if tx != p['acc']: bad(f"{t} {short(tx, 60)!r} != deltas {short(p['acc'], 60)!r}")
        elif t == 'response.content_part.done':
            p = x['parts'].get(ci)
            if p is None: bad(f'{t} for unannounced part {oi}/{ci}'); continue
            if p['done'] and p['type'] != 'reasoning_text': bad(f'content_part.done twice {oi}/{ci}')
            p['done'] = True
            part = e.get('part') or {}
            if part.get('type') == 'output_text' and not p['td']: bad('content_part.done before output_text.done')
            tx = part.get('text', part.get('refusal'))
            if tx is not None and tx != p['acc']: bad(f"content_part.done text {short(tx, 60)!r} != deltas {short(p['acc'], 60)!r}")
        elif t in ('response.reasoning_summary_part.added',):
            x['sparts'][e.get('summary_index')] = {'acc': '', 'done': False}
        elif t == 'response.reasoning_summary_text.delta':
            p = x['sparts'].get(e.get('summary_index'))
            if p is None: bad('summary delta for unannounced part'); continue
            p['acc'] += e.get('delta') or ''
        elif t == 'response.reasoning_summary_text.done':
            p = x['sparts'].get(e.get('summary_index'))
            if p is None: bad('summary done for unannounced part')
            elif e.get('text') != p['acc']: bad(f"summary done {short(e.get('text'), 60)!r} != deltas {short(p['acc'], 60)!r}")
        elif t == 'response.reasoning_summary_part.done':
            p = x['sparts'].get(e.get('summary_index'))
            if p is None: bad('summary_part.done for unannounced part')
            else: p['done'] = True
        elif t.endswith('_arguments.delta') or t.endswith('_call_input.delta'):
            f = 'input' if 'input' in t else 'arguments'
            if not isinstance(e.get('delta'), str): bad(f'{t} delta is no string'); continue
            x['acc'][f] = x['acc'].get(f, '') + e['delta']
            if x['argd'] is not None: bad(f'{t} after its .done')
        elif t.endswith('_arguments.done') or t.endswith('_call_input.done'):
            f = 'input' if 'input' in t else 'arguments'
            if x['argd'] is not None: bad(f'{t} twice')
            x['argd'] = e.get(f)
            if x['acc'].get(f) and e.get(f) != x['acc'][f]: bad(f"{t} {short(e.get(f), 60)!r} != deltas {short(x['acc'][f], 60)!r}")
            if e.get(f) and not x['acc'].get(f) and x['type'] in ('function_call', 'custom_tool_call') and strict: bad(f'{t} without deltas')
    T = E[term[-1]] if term else None
    tt = T.get('type') if T else None
    opened = [k for k, x in items.items() if x['done'] is None]
    if opened and (tt in ('response.completed', 'response.incomplete') or strict): bad(f"items never closed: {[(k, items[k]['type']) for k in opened]}")
    if T and isinstance(T.get('response'), dict):
        out = T['response'].get('output')
        if not isinstance(out, list): bad('terminal response.output is no array')
        elif tt in ('response.completed', 'response.incomplete') or strict:
            dn = [x['done'] for k, x in sorted(items.items()) if x['done'] is not None]
            if len(dn) != len(out): bad(f"terminal output has {len(out)} items {[o.get('type') for o in out if isinstance(o, dict)]}, done events announced {len(dn)} {[o.get('type') for o in dn]}")
            else:
                for i, (a, b) in enumerate(zip(dn, out)):
                    if norm(a) != norm(b):
                        ks = [k for k in set(a) | set(b) if norm(a.get(k)) != norm(b.get(k))]
                        bad(f"terminal output[{i}] ({b.get('type')}) differs from its done event in {sorted(ks)}"); break
    return P

# ----------------------------------------------------------------------------- one case
class Run:
    def __init__(self, eng, case):
        self.eng, self.case = eng, case
        self.calls = []; self.mcp_calls = []; self.mcp_state = {}; self.extra_calls = 0
        self.ctx = {}; self.res = {}; self.unresolved = []; self.fails = []; self.tpl = Tpl(self); self.nchecks = 0
        a = eng.args
        base = a.model or ('m' + ('.' + case['profile'] if case.get('profile') and a.profiles is not None else '') + '-' + case['id'] + (('-' + a.nonce) if a.nonce else ''))
        self.model = base.lower() if False else base
        self.client_model = a.model_template.replace('{model}', base)
    def fail(self, cat, msg): self.fails.append((cat, msg))

    async def request(self, spec, name):
        a = self.eng.args
        spec = self.tpl.sub(copy.deepcopy(spec))
        res = Result(); res.t0 = time.monotonic()
        method = spec.get('method', 'POST'); path = spec.get('path', '/responses')
        if path.startswith('/v1/'): path = path[3:]
        body = spec.get('body')
        if isinstance(body, dict) and body.get('model') == 'm': body = {**body, 'model': self.client_model}
        H = {'authorization': 'Bearer ' + (a.api_key_b if spec.get('as') == 'B' and a.api_key_b else a.api_key), **{k: v for k, v in (kv.split(':', 1) for kv in a.header)}}
        H.update(spec.get('headers') or {})
        kw = {}
        if 'raw_body' in spec: kw['data'] = spec['raw_body'].replace('"m"', json.dumps(self.client_model)).encode('utf-8', 'surrogatepass'); H.setdefault('content-type', 'application/json')
        elif 'multipart' in spec:
            f = aiohttp.FormData()
            for k, v in spec['multipart'].items():
                if isinstance(v, dict):
                    data = bytes.fromhex(v['hex']) if 'hex' in v else base64.b64decode(v['base64']) if 'base64' in v else v.get('text', '').encode('utf-8', 'surrogatepass')
                    f.add_field(k, data, filename=v.get('name', 'f.txt'), content_type=v.get('content_type', 'application/octet-stream'))
                else: f.add_field(k, str(v))
            kw['data'] = f
        elif body is not None or spec.get('null_body'): kw['data'] = json.dumps(body).encode(); H.setdefault('content-type', 'application/json')
        cl = spec.get('client') or {}
        url = a.base_url.rstrip('/') + path
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=spec.get('timeout_s', 120)), connector=aiohttp.TCPConnector(force_close=True)) as s:
                async def go():
                    async with s.request(method, url, headers=H, **kw) as r:
                        res.status = r.status; res.headers = {k.lower(): v for k, v in r.headers.items()}; res.th = time.monotonic()
                        if 'text/event-stream' in r.headers.get('content-type', ''):
                            res.sse = SseParser()
                            done = False
                            try:
                                async for b in r.content.iter_any():
                                    t = time.monotonic(); res.raw += b; res.sse.feed(b, t)
                                    if 'close_after_event' in cl:
                                        if sum(1 for e in res.sse.events if isinstance(e['data'], dict) and e['data'].get('type') == cl['close_after_event']) >= cl.get('nth', 1): done = True
                                    if 'close_after_sequence' in cl and any(isinstance(e['data'], dict) and e['data'].get('sequence_number', -1) >= cl['close_after_sequence'] for e in res.sse.events): done = True
                                    if done:
                                        await asyncio.sleep(cl.get('then_wait_ms', 0) / 1000)
                                        res.closed_at = time.monotonic(); r.close(); break
                            except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError) as e: res.error = f'downstream connection broke: {type(e).__name__}'
                            if not done: res.sse.feed(b'\n\n' if res.sse.data else b'', time.monotonic())
                        else:
                            res.raw = await r.read()
                if 'close_after_ms' in cl:
                    try: await asyncio.wait_for(go(), cl['close_after_ms'] / 1000)
                    except asyncio.TimeoutError: pass
                    res.closed_at = time.monotonic()
                else: await go()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as e:
            res.error = f'{type(e).__name__}: {e}'
        res.t1 = time.monotonic()
        if res.is_sse:
            res.evt = [e for e in res.sse.events if isinstance(e['data'], dict)]
            res.events = [e['data'] for e in res.evt]
        else:
            try: res.json = json.loads(res.raw)
            except Exception: res.json = None
        if name:
            self.res[name] = res
            f = res.final()
            self.ctx[name] = f if isinstance(f, (dict, list)) else {}
            cid = next((e['response'].get('id') for e in res.events if isinstance(e.get('response'), dict)), None)
            self.ctx[name + '$'] = {'status': res.status, 'headers': res.headers, 'events': res.events, 'created_id': cid, 'text': res.raw.decode('utf-8', 'replace')}
            if (not self.ctx[name] or 'id' not in self.ctx[name]) and cid: self.ctx[name] = {**(self.ctx[name] if isinstance(self.ctx[name], dict) else {}), 'id': cid}
        return res

    async def step(self, st, idx):
        name = st.get('name') or f'r{idx + 1}'
        if 'sleep_ms' in st: await asyncio.sleep(st['sleep_ms'] / 1000)
        if 'loop' in st:
            for k in range(st['loop']):
                for i, x in enumerate(st['steps']): await self.step({'name': f'{name}_{i + 1}', **x}, idx)
                if self.fails: self.fail('function', f'in round {k + 1} of {st["loop"]}'); break
            return
        if 'parallel' in st:
            await asyncio.gather(*[self.step({'name': f'{name}_{i + 1}', **s}, idx) for i, s in enumerate(st['parallel'])])
            await self.checks(st.get('expect') or [], None, name); return
        if 'request' not in st:
            await self.checks(st.get('expect') or [], None, name); return
        n = st.get('repeat', 1)
        for k in range(n):
            if 'until' in st:
                end = time.monotonic() + st.get('max_ms', 8000) / 1000; u = st['until']
                while True:
                    res = await self.request(st['request'], name)
                    v = get_path(res.final() if isinstance(res.final(), (dict, list)) else {}, u['path'])
                    if ops_check(v, u) is None: break
                    if time.monotonic() > end: self.fail('function', f'{name}: polling ended: {u["path"]} {ops_check(v, u)}'); break
                    await asyncio.sleep(st.get('every_ms', 150) / 1000)
            else: res = await self.request(st['request'], name)
            await self.checks(st.get('expect') or [], res, name)
            if self.fails and n > 1: break

    async def run(self):
        t0 = time.monotonic()
        try:
            steps = self.case['steps']
            async def go():
                for i, s in enumerate(steps):
                    await self.step(s, i)
                    if any(c == 'function' for c, _ in self.fails) and i + 1 < len(steps) and not s.get('go_on'):
                        break
            to = self.case.get('timeout_s', self.eng.args.timeout) * self.eng.args.timeout_scale
            await asyncio.wait_for(go(), to)
        except asyncio.TimeoutError: self.fail('function', f'case timed out after {to} s')
        except Exception as e:
            if self.eng.verbose: import traceback; traceback.print_exc()
            self.fail('runner', f'{type(e).__name__}: {e}')
        if self.fails and self.unresolved: self.fails[0] = (self.fails[0][0], self.fails[0][1] + f'  [unresolved: {self.unresolved[0]}]')
        if self.fails and self.extra_calls: self.fails[0] = (self.fails[0][0], self.fails[0][1] + f'  [{self.extra_calls} upstream call(s) beyond the script]')
        self.dur = time.monotonic() - t0

    # --- checks
    async def checks(self, L, res, name):
        for c in L:
            self.nchecks += 1
            try: r = await self.check(c, res)
            except Exception as e:
                if self.eng.verbose: import traceback; traceback.print_exc()
                r = f'check crashed on this answer: {type(e).__name__}: {e}'
            if r:
                cat = 'lifecycle' if 'lifecycle' in c else 'schema' if 'schema' in c else 'retrievable' if 'retrievable' in c else 'function'
                pre = f'{name}: ' if len(self.case['steps']) > 1 else ''
                extra = ''
                if res is not None and cat == 'function' and (res.error or (not res.is_sse and (res.status or 0) >= 400)): extra = f'  [HTTP {res.status} {res.error or short(res.raw.decode("utf-8", "replace"), 150)}]'
                elif res is not None and cat == 'function' and res.is_sse and res.terminal() and res.terminal().get('type') not in ('response.completed',): extra = f"  [terminal {res.terminal().get('type')} {short(res.error_obj(), 140)}]"
                self.fail(cat, pre + r + (f" -- {c['note']}" if c.get('note') else '') + extra)

    async def check(self, c, res):
        c = self.tpl.sub(copy.deepcopy(c))
        if 'any_of' in c:
            why = []
            for alt in c['any_of']:
                alt = alt if isinstance(alt, list) else [alt]
                bad = None
                for x in alt:
                    bad = await self.check(x, res)
                    if bad: break
                if not bad: return None
                why.append(bad)
            return 'no alternative holds: ' + ' | '.join(f'({i + 1}) {w}' for i, w in enumerate(why))
        if 'all_of' in c:
            for x in c['all_of']:
                r = await self.check(x, res)
                if r: return r
            return None
        if 'not' in c: return None if await self.check(c['not'], res) else f"must not hold: {short(c['not'])}"
        if 'of' in c:   # evaluate on another named step's result
            res = self.res.get(c['of'])
            if res is None: return f"no result {c['of']}"
            c = {k: v for k, v in c.items() if k != 'of'}
        if 'value' in c: return (lambda r: r and f"{r}")(ops_check(c['value'] if not (isinstance(c['value'], str) and c['value'].startswith('<unresolved:')) else MISSING, c))
        if 'same' in c:
            v = c['same']
            return None if all(norm(x) == norm(v[0]) for x in v) and not str(v[0]).startswith('<unresolved') else f'not the same: {short(v)}'
        if 'distinct' in c:
            k = [json.dumps(x) for x in c['distinct']]
            return None if len(set(k)) == len(k) and not any('<unresolved' in x for x in k) else f'not distinct: {short(c["distinct"])}'
        if 'upstream_calls' in c:
            w = c['upstream_calls']; n = len(self.calls)
            r = ops_check(n, w if isinstance(w, dict) else {'equals': w})
            return r and f'upstream calls: {n}, want {w}'
        if 'upstream' in c:
            u = c['upstream']; n = u.get('n', 1)
            try: call = self.calls[n - 1 if n > 0 else n]
            except IndexError: return f'no upstream call {n} (there were {len(self.calls)})'
            v = call['headers'].get(u['header'].lower(), MISSING) if 'header' in u else get_path(call['body'], u['path']) if u.get('path') else call['body']
            if u.get('as_json'): v = json.dumps(v, ensure_ascii=False) if v is not MISSING else v
            r = ops_check(v, u)
            return r and f"upstream[{n}].{u.get('path') or u.get('header') or ''}: {r}"
        if 'upstream_pairing' in c:    # every tool call is followed by exactly its tool messages
            n = c['upstream_pairing']
            try: call = self.calls[n - 1 if n > 0 else n]
            except IndexError: return f'no upstream call {n}'
            return pairing(call['body'].get('messages') or [])
        if 'upstream_closed' in c:
            u = c['upstream_closed']; n = u.get('n', 1)
            end = time.monotonic() + u['within_ms'] / 1000 + 0.3
            while time.monotonic() < end and (len(self.calls) < n or self.calls[n - 1]['closed_at'] is None): await asyncio.sleep(0.02)
            if len(self.calls) < n: return f'no upstream call {n}'
            ca = self.calls[n - 1]['closed_at']
            if ca is None: return f'upstream connection {n} still open {u["within_ms"]} ms later'
            ref = (res.closed_at or res.t0) if res else None
            if ref and (ca - ref) * 1000 > u['within_ms']: return f'upstream closed {int((ca - ref) * 1000)} ms later, limit {u["within_ms"]}'
            return None
        if 'mcp_calls' in c:
            u = c['mcp_calls']
            n = sum(1 for m in self.mcp_calls if (u.get('method') in (None, m['method'])) and u.get('label', m['label']) == m['label'] and u.get('http', m['http']) == m['http'])
            r = ops_check(n, u)
            return r and f"MCP {u.get('label', '')} {u.get('method') or u.get('http')}: {n} calls, {r}"
        if 'mcp' in c:
            u = c['mcp']
            L = [m for m in self.mcp_calls if u.get('method') in (None, m['method']) and u.get('label', m['label']) == m['label']]
            try: m = L[u.get('n', 1) - 1 if u.get('n', 1) > 0 else u['n']]
            except IndexError: return f"no MCP call {u.get('method')} {u.get('n', 1)} (there were {len(L)})"
            r = ops_check(get_path(m, u['path']), u)
            return r and f"mcp {u.get('method')}.{u['path']}: {r}"
        if res is None: return f'check needs a request: {short(c)}'
        if res.error and res.status is None: return f'request failed: {res.error}'
        if 'status' in c:
            w = c['status']
            r = ops_check(res.status, w if isinstance(w, dict) else {'in': w} if isinstance(w, list) else {'equals': w})
            return r and f'HTTP status {res.status}, want {w}'
        if 'terminal' in c:
            w = c['terminal'] if isinstance(c['terminal'], list) else [c['terminal']]
            if not res.is_sse:
                # a non-stream answer: compare response.status
                st = 'response.' + str((res.json or {}).get('status')) if isinstance(res.json, dict) else None
                return None if st in w else f'not a stream (HTTP {res.status}); status {st}, want {w}'
            t = res.terminal()
            ty = (t.get('type') or 'untyped error') if t else 'none'
            return None if ty in w else f'terminal event {ty}, want {"|".join(w)}' + (f' ({res.error})' if res.error else '')
        if 'fails' in c:
            f = c['fails'] if isinstance(c['fails'], dict) else {}
            if res.is_sse:
                t = res.terminal(); ty = t.get('type') if t else 'none'
                if f.get('http_only'): return f'HTTP {res.status} stream instead of an HTTP error'
                if ty != 'response.failed': return f'terminal event {ty}, want response.failed (or an HTTP error before the stream)'
                e = t['response'].get('error') if isinstance(t.get('response'), dict) else None
                if not isinstance(e, dict) or not isinstance(e.get('message'), str) or not e.get('code'): return f'response.error malformed: {short(e)}'
            else:
                if isinstance(res.json, dict) and res.json.get('object') == 'response' and res.json.get('status') == 'failed' and not f.get('http_only'): e = res.json.get('error') or {}
                else:
                    if (res.status or 0) < 400: return f'HTTP {res.status}, want a failure'
                    e = res.json.get('error') if isinstance(res.json, dict) else None
                    if not isinstance(e, dict): return f'error body not in the OpenAI shape: {short(res.raw.decode("utf-8", "replace"))}'
                    if not isinstance(e.get('message'), str) or not e['message']: return f'error.message missing: {short(e)}'
                    if not isinstance(e.get('type'), str): return f'error.type missing: {short(e)}'
                    for k in ('param', 'code'):
                        if e.get(k) is not None and not isinstance(e[k], str): return f'error.{k} is {typ(e[k])}, want string or null'
                    w = f.get('status')
                    if w is not None:
                        r = ops_check(res.status, w if isinstance(w, dict) else {'in': w} if isinstance(w, list) else {'equals': w})
                        if r: return f'HTTP status {res.status}, want {w}'
            for k in ('code', 'param', 'message', 'type'):
                if k in f and not (res.is_sse and k in ('param', 'type')):
                    w = f[k]
                    r = ops_check(e.get(k), w if isinstance(w, dict) else {'in': w} if isinstance(w, list) else {'equals': w})
                    if r: return f'error.{k}: {r}'
            return None
        F = res.final()
        Fd = F if isinstance(F, dict) else {}
        if 'path' in c and not any(k in c for k in ('each_event', 'any_event', 'header')):
            r = ops_check(get_path(F, c['path']) if F is not None else MISSING, c)
            return r and f"{c['path']}: {r}"
        def textop(v, w, what):
            r = ops_check(v, w if isinstance(w, dict) else {'equals': w})
            return r and f'{what}: {r}'
        if 'stream_text' in c:
            v = ''.join(e.get('delta') or '' for e in res.events if e.get('type') == 'response.output_text.delta') if res.is_sse else out_text(Fd)
            return textop(v, c['stream_text'], 'delivered text')
        if 'final_text' in c: return textop(out_text(Fd), c['final_text'], 'final text')
        if 'reasoning_text' in c:
            v = reasoning_text(Fd)
            if res.is_sse:
                d = ''.join(e.get('delta') or '' for e in res.events if e.get('type') in ('response.reasoning_text.delta', 'response.reasoning_summary_text.delta'))
                if d != v and not (d and v and d == v * 2): return f'streamed reasoning {short(d)!r} != final {short(v)!r}'
                if d and v and d == v * 2 and v: return 'reasoning is streamed twice (summary and text)'
            return textop(v, c['reasoning_text'], 'reasoning text')
        if 'output_types' in c:
            v = [i.get('type') for i in (Fd.get('output') or []) if isinstance(i, dict)]
            w = c['output_types']
            return textop(v, w if isinstance(w, dict) else {'equals': w}, 'output types')
        if 'calls' in c:
            items = [i for i in (Fd.get('output') or []) if isinstance(i, dict) and i.get('type') == c.get('item_type', 'function_call')]
            if len(items) != len(c['calls']): return f"{len(items)} {c.get('item_type', 'function_call')} items, want {len(c['calls'])}: {short([(i.get('name'), i.get('arguments')) for i in items])}"
            for k, (i, w) in enumerate(zip(items, c['calls'])):
                for f, wv in w.items():
                    if f == 'arguments_json':
                        try: j = json.loads(i.get('arguments'))
                        except Exception: return f"call {k}: arguments not JSON: {short(i.get('arguments'))}"
                        if j != wv: return f"call {k}: arguments {short(j)} != {short(wv)}"
                    elif i.get(f) != wv: return f"call {k}: {f} {short(i.get(f))} != {short(wv)}"
            ids = [i.get('call_id') for i in items]
            if c.get('item_type', 'function_call') == 'function_call':
                if any(not isinstance(x, str) or not x for x in ids): return f'call_id missing: {ids}'
                if len(set(ids)) != len(ids): return f'call_ids not distinct: {ids}'
            return None
        types = [e.get('type') for e in res.events]
        if 'events_subsequence' in c:
            it = iter(types)
            for w in c['events_subsequence']:
                ws = w if isinstance(w, list) else [w]
                if not any(t in ws for t in it): return f'event order: {"|".join(ws)} not found in place; got {short(types, 400)}'
            return None
        if 'event_count' in c:
            u = c['event_count']; n = sum(1 for t in types if (t == u['type'] if 'type' in u else re.search(u['type_matches'], t or '')))
            r = ops_check(n, {k: v for k, v in u.items() if k not in ('type', 'type_matches')})
            return r and f"{n} x {u.get('type') or u['type_matches']}: {r}"
        if 'each_event' in c or 'any_event' in c:
            u = c.get('each_event') or c['any_event']
            sel = [e for e in res.events if ('type' not in u or e.get('type') == u['type']) and ('type_matches' not in u or re.search(u['type_matches'], e.get('type') or '')) and ('where' not in u or ops_check(get_path(e, u['where']['path']), u['where']) is None)]
            if not sel: return f"no event {u.get('type') or u.get('type_matches')}"
            rs = [ops_check(get_path(e, u['path']), {k: v for k, v in u.items() if k not in ('type',)}) for e in sel]
            if 'each_event' in c:
                b = [r for r in rs if r]
                return b and f"{u.get('type') or u.get('type_matches')}.{u['path']}: {b[0]}" or None
            return None if any(r is None for r in rs) else f"no {u.get('type')} with {u['path']}: {rs[0]}"
        if 'no_text_anywhere' in c:
            blob = res.raw.decode('utf-8', 'replace') + '\n' + json.dumps(res.events or res.json, ensure_ascii=False) + '\n' + ''.join(str(e.get('delta', '')) for e in res.events) + '\n' + str(res.headers)
            for w in (c['no_text_anywhere'] if isinstance(c['no_text_anywhere'], list) else [c['no_text_anywhere']]):
                if w in blob: return f'{w!r} appears in the answer: ..{short(blob[max(0, blob.find(w) - 60):blob.find(w) + 60])}..'
            return None
        if 'header' in c:
            u = c['header']; r = ops_check(res.headers.get(u['name'].lower(), MISSING), u)
            return r and f"header {u['name']}: {r}"
        if 'comments' in c: return textop(len(res.sse.comments) if res.is_sse else 0, c['comments'], 'SSE comment lines')
        if 'timing' in c:
            u = c['timing']
            L = [w for w in res.evt if w['data'].get('type') == u['event']]
            k = u.get('nth', 1) - 1
            if len(L) <= k: return f"timing: no event {u['event']} #{k + 1}"
            ms = (L[k]['t'] - res.t0) * 1000
            if 'within_ms' in u and ms > u['within_ms']: return f"{u['event']} #{k + 1} came after {int(ms)} ms, limit {u['within_ms']}"
            if 'after_ms' in u and ms < u['after_ms']: return f"{u['event']} #{k + 1} came after {int(ms)} ms, expected >= {u['after_ms']}"
            return None
        if 'duration_ms' in c: return textop(int((res.t1 - res.t0) * 1000), c['duration_ms'], 'duration')
        if 'clean_end' in c: return None if not res.error else res.error
        if 'lifecycle' in c:
            if not res.is_sse: return None if (res.status or 0) >= 400 else 'answer is not an event stream'
            w = c['lifecycle']; w = w if isinstance(w, dict) else {}
            P = lifecycle(res, strict=w.get('strict', False), resumed=w.get('resumed', False))
            P += ([res.error] if res.error and not res.closed_at else [])
            return '; '.join(P[:4]) + (f' (+{len(P) - 4} more)' if len(P) > 4 else '') if P else None
        if 'schema' in c:
            S = self.eng.schemas; out = []
            if res.is_sse:
                for e in res.events: out += S.event_errors(e)
            elif (res.status or 0) >= 400:
                e = res.json.get('error') if isinstance(res.json, dict) else None
                if not (isinstance(e, dict) and isinstance(e.get('message'), str) and isinstance(e.get('type'), str) and all(k in e and (e[k] is None or isinstance(e[k], str)) for k in ('param', 'code'))): out.append('error body is not {error:{message,type,param,code}}: ' + short(res.raw.decode('utf-8', 'replace')))
            else:
                o = res.json if isinstance(res.json, dict) else {}
                n = c['schema'] if isinstance(c['schema'], str) else {'response': 'Response', 'response.compaction': 'CompactResource'}.get(o.get('object'), 'Response')
                out = S.errors(n, o)
            out = list(dict.fromkeys(out))
            return '; '.join(out[:3]) + (f' (+{len(out) - 3} more)' if len(out) > 3 else '') if out else None
        if 'retrievable' in c:
            rid = Fd.get('id')
            if not rid: return 'no response id to fetch'
            g = await self.request({'method': 'GET', 'path': f'/responses/{rid}'}, None)
            if g.status != 200 or not isinstance(g.json, dict): return f'GET /responses/{rid}: HTTP {g.status} {short(g.raw.decode("utf-8", "replace"), 100)}'
            ks = [k for k in ('id', 'status', 'output', 'usage', 'error', 'incomplete_details', 'model') if norm(g.json.get(k)) != norm(Fd.get(k))]
            if ks:
                k = ks[0]
                return f'stored copy differs in {ks}: {k} {short(g.json.get(k), 120)} != {short(Fd.get(k), 120)}'
            return None
        if 'resume_of' in c:
            a = self.res.get(c['resume_of'])
            if a is None: return 'no first part'
            sa = [e.get('sequence_number') for e in a.events]; sb = [e.get('sequence_number') for e in res.events]
            if not sb: return 'resumed stream has no events'
            if any(not isinstance(x, int) for x in sa + sb): return 'sequence_number missing'
            st = c.get('starting_after')
            all_ = [x for x in sa if st is None or x <= st] + sb
            if all_ != list(range(all_[0], all_[0] + len(all_))) or all_[0] != 0: return f'first part {sa[:8]}.. + resumed {sb[:8]}.. leave a gap or a double'
            return None
        return f'UNKNOWN CHECK {short(c)}'

def pairing(ms):
    i = 0
    seen = []
    while i < len(ms):
        m = ms[i]
        tcs = m.get('tool_calls') if m.get('role') == 'assistant' else None
        if tcs:
            ids = [t.get('id') for t in tcs]
            if len(set(ids)) != len(ids): return f'two calls share an id in one message: {ids}'
            for x in ids:
                if x in seen: return f'id {x} used by two calls in one upstream request'
            seen += ids
            got = []
            while i + 1 < len(ms) and ms[i + 1].get('role') == 'tool': got.append(ms[i + 1].get('tool_call_id')); i += 1
            if sorted(map(str, got)) != sorted(map(str, ids)): return f'calls {ids} but tool messages {got} follow'
        elif m.get('role') == 'tool': return f"tool message {m.get('tool_call_id')} without a call before it"
        i += 1
    return None

# ----------------------------------------------------------------------------- engine
class Engine:
    def __init__(self, args):
        self.args = args; self.active = {}; self.active_by_id = {}; self.notes = []; self.verbose = args.verbose
        self.embed_models = ['text-embedding-3-small', 'e-256']; self.embed_calls = 0; self.run_id = uuid.uuid4().hex[:8]; self.all = []
        from schema_check import Schemas
        self.schemas = Schemas(args.openapi)
    def mcp_url(self, cid, label=None): return f'http://{self.args.mcp_host}:{self.args.upstream_port + 1}/mcp/{cid}' + (f'/{label}' if label else '')
    def model_names(self): return {r.model for r in self.all}
    def find_run(self, model):
        m = str(model or '')
        for k in (m, m.split('/')[-1], m.split('/')[-1].split(':')[0]):
            if k in self.active: return self.active[k]
        if len(self.active) == 1: return next(iter(self.active.values()))
        return None
    async def one(self, run):
        self.active[run.model] = run; self.active_by_id[run.case['id']] = run
        try: await run.run()
        finally:
            await asyncio.sleep(0)
            self.active.pop(run.model, None); self.active_by_id.pop(run.case['id'], None)

def load(dirs):
    out = []
    for d in dirs.split(','):
        fs = [d] if os.path.isfile(d) else sorted(glob.glob(os.path.join(d, '**', '*.json'), recursive=True))
        for f in fs:
            j = json.load(open(f))
            for c in (j if isinstance(j, list) else j.get('cases', [])):
                if isinstance(c, dict) and 'steps' in c: out.append(c)
    return out

def matches_settings(case, args):
    s = case.get('settings') or {}
    if not s: return True
    if args.all_settings: return True
    if args.profiles and case.get('profile') in args.profiles.split(','): return True
    have = args.settings_obj
    return all(k in have and have[k] == v for k, v in s.items())

def parse_settings(s):
    if not s: return {}
    if os.path.isfile(s): return json.load(open(s))
    if s.strip().startswith('{'): return json.loads(s)
    o = {}
    for kv in s.split(','):
        k, _, v = kv.partition('=')
        try: o[k.strip()] = json.loads(v) if v else True
        except ValueError: o[k.strip()] = v
    return o

async def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--base-url', required=True); ap.add_argument('--upstream-port', type=int, default=9700); ap.add_argument('--cases', required=True)
    ap.add_argument('--only'); ap.add_argument('--skip', default=''); ap.add_argument('--area'); ap.add_argument('--kind'); ap.add_argument('--json'); ap.add_argument('--api-key', default='sk-test'); ap.add_argument('--api-key-b')
    ap.add_argument('--model', help='one fixed model name; cases then run one after the other'); ap.add_argument('--model-template', default='{model}', help='what the client sends, e.g. vllm/{model}')
    ap.add_argument('--nonce', default='', help='appended to model names, so that what a server learned about a model in an earlier run does not count')
    ap.add_argument('--jobs', type=int, default=4); ap.add_argument('--timeout', type=float, default=10); ap.add_argument('--timeout-scale', type=float, default=1, help='multiplies every case timeout (slow product or machine)'); ap.add_argument('--header', action='append', default=[])
    ap.add_argument('--settings', default=''); ap.add_argument('--profiles', help='comma list of per-model profiles the product offers (models m.<profile>-<id>)'); ap.add_argument('--all-settings', action='store_true')
    ap.add_argument('--openapi', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'schemas', 'openai-openapi.json')); ap.add_argument('--mcp-host', default='127.0.0.1'); ap.add_argument('--embed-dim', type=int, default=256)
    ap.add_argument('--functional', action='store_true', help='exit code and PASS ignore lifecycle, schema and retrievable checks'); ap.add_argument('--serve-only', action='store_true'); ap.add_argument('--list', action='store_true')
    ap.add_argument('-v', '--verbose', action='store_true'); ap.add_argument('--full', action='store_true', help='print all reasons, uncut')
    args = ap.parse_args(); args.settings_obj = parse_settings(args.settings)
    cases = load(args.cases)
    if args.only:
        want = args.only.split(',')
        cases = [c for c in cases if any(c['id'] == w or c.get('base') == w for w in want)]
    if args.skip: cases = [c for c in cases if c['id'] not in args.skip.split(',')]
    if args.area: cases = [c for c in cases if c['area'] in args.area.split(',')]
    if args.kind: cases = [c for c in cases if c['kind'] in args.kind.split(',')]
    ids = [c['id'] for c in cases]; assert len(ids) == len(set(ids)), 'duplicate ids'
    if args.list:
        for c in cases: print(c['id'], c['area'], c['kind'], json.dumps(c.get('settings') or {}), c['title'])
        return 0
    eng = Engine(args)
    up = Upstream(eng); await up.start(args.upstream_port)
    mcp = Mcp(eng); await mcp.start(args.upstream_port + 1)
    runs = [Run(eng, c) for c in cases if matches_settings(c, args)]
    skipped = [c for c in cases if not matches_settings(c, args)]
    eng.all = runs
    if args.serve_only:
        for r in runs: eng.active[r.model] = r; eng.active_by_id[r.case['id']] = r
        print('serving', len(runs), 'cases'); await asyncio.Event().wait()
    jobs = 1 if args.model else args.jobs
    sem = asyncio.Semaphore(jobs)
    def show(r):
        f = [x for x in r.fails if not args.functional or x[0] in ('function', 'runner')]
        if not f: print(f'PASS {r.case["id"]}', flush=True)
        else:
            t = ' ;; '.join(f'[{c}] {m}' for c, m in f)
            t = t.encode('utf-8', 'backslashreplace').decode()
            print(f'FAIL {r.case["id"]} {t if args.full else t[:420]}', flush=True)
    async def go(r):
        async with sem: await eng.one(r); show(r)
    await asyncio.gather(*[go(r) for r in runs if not r.case.get('serial')])
    for r in runs:
        if r.case.get('serial'): await eng.one(r); show(r)
    # totals
    def ok(r): return not r.fails
    def okf(r): return not any(c in ('function', 'runner') for c, _ in r.fails)
    def table(key):
        d = {}
        for r in runs:
            x = d.setdefault(r.case[key], [0, 0, 0]); x[0] += 1; x[1] += ok(r); x[2] += okf(r)
        return d
    for key in ('area', 'kind'):
        print(f'\n{key:24} cases  pass  functional-pass')
        for k, (n, p, q) in sorted(table(key).items()): print(f'{k:24} {n:5} {p:5} {q:5}')
    n = len(runs)
    cats = {c: sum(1 for r in runs if any(x == c for x, _ in r.fails)) for c in ('function', 'lifecycle', 'schema', 'retrievable', 'runner')}
    print(f'\nTOTAL {n} cases: {sum(map(ok, runs))} pass all checks, {sum(map(okf, runs))} pass the functional checks; skipped for settings {len(skipped)}; cases failing per check group: {cats}')
    if eng.notes:
        from collections import Counter
        print('notes:', Counter(eng.notes).most_common(5))
    if args.json:
        def clean(s): return s.encode('utf-8', 'backslashreplace').decode()
        json.dump({'base_url': args.base_url, 'cases': [{'id': r.case['id'], 'area': r.case['area'], 'kind': r.case['kind'], 'pass': ok(r), 'functional': okf(r), 'checks': r.nchecks, 'ms': int(r.dur * 1000), 'fails': [{'group': c, 'reason': clean(m)} for c, m in r.fails], 'upstream_calls': len(r.calls)} for r in runs],
                   'skipped': [{'id': c['id'], 'settings': c['settings']} for c in skipped], 'by_area': table('area'), 'by_kind': table('kind'), 'groups': cats}, open(args.json, 'w'), indent=1)
    return 0 if all((okf if args.functional else ok)(r) for r in runs) else 1

if __name__ == '__main__':
    rc = asyncio.run(main())
    sys.stdout.flush(); os._exit(rc)
