"""Validate Responses bodies and events against the components of the public OpenAPI file.

Tolerances (see RELAXED at the bottom of this docstring; printed by `python schema_check.py --relaxed`).
"""
import json, os, re, sys
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

RELAXED = [
 "oneOf is read as anyOf (many branches of the spec overlap, e.g. EasyInputMessage and Message)",
 "a oneOf/anyOf whose branches all carry a distinct constant `type` is resolved by that `type`, so one precise error comes out; an unknown `type` is an error, except in echoed `tools`/`tool_choice`, where it is accepted",
 "additionalProperties:false is dropped: vendor extras are allowed everywhere",
 "nullable:true (3.0 style) is understood; boolean exclusiveMinimum (draft 4) and $recursiveRef are dropped",
 "format and pattern are not enforced; maxLength/minimum/maximum are",
 "ResponseUsage.input_tokens_details.cache_write_tokens is not required (recent addition)",
 "ResponseErrorCode: any non-empty string (the enum lacks context_length_exceeded and others really sent)",
 "integers written as floats with zero fraction (7.0) count as integers, as in JSON Schema",
 "echoed tools: fields required only by the spec's later versions may be missing for hosted tools (container, filters); FunctionTool.strict and .parameters stay required",
 "MCPListToolsTool.annotations/description may be absent; MCPToolCall/MCPListTools `error` may be a string or an object (spec and server disagree)",
 "WebSearchToolCall.action is not required in output_item.added (nothing is known yet); it is in done and final",
 "event fields: `obfuscation` and other extras allowed; response.error event may carry code:null only if message is present -> still an error (EV-09)",
 "null is accepted for every property that is not required (the spec's own examples send user:null, usage:null, incomplete_details:null)",
 "logprobs of output_text parts and of text delta/done events is not required here (the spec's own examples leave it out); the case EV-05 demands it by itself",
 "top-level Response: tool_choice/tools/parallel_tool_calls/temperature/top_p/metadata are required as in the spec (null where it allows)",
]

def _deref(root, s, depth=0):
    while isinstance(s, dict) and '$ref' in s and depth < 20:
        n = s['$ref'].split('/')[-1]; s = root.get(n, {}); depth += 1
    return s

def _consts(root, s, prop):
    s = _deref(root, s)
    if not isinstance(s, dict): return None
    p = (s.get('properties') or {}).get(prop)
    if p is not None:
        p = _deref(root, p)
        if 'const' in p: return [p['const']]
        if p.get('enum'): return list(p['enum'])
    for k in ('allOf',):
        for b in s.get(k, []):
            c = _consts(root, b, prop)
            if c: return c
    for k in ('oneOf', 'anyOf'):
        if k in s:
            out = []
            for b in s[k]:
                c = _consts(root, b, prop)
                if not c: return None
                out += c
            return out
    return None

LAX_UNKNOWN = {'Tool', 'ToolChoiceParam'}

class Schemas:
    def __init__(self, path=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'schemas', 'openai-openapi.json')):
        doc = json.load(open(path))
        self.src = doc['components']['schemas']
        self.out = {}
        todo = ['Response', 'ResponseStreamEvent', 'CompactResource', 'OutputItem', 'ErrorResponse', 'ConversationItemList', 'ResponseItemList']
        seen = set()
        while todo:
            n = todo.pop()
            if n in seen or n not in self.src: continue
            seen.add(n)
            self._cur = n
            self.out[n] = self._t(self.src[n], n, todo)
        self._relax()
        V = Draft202012Validator
        def disc(validator, spec, instance, schema):
            if not isinstance(instance, dict):
                if spec.get('nonobj'):
                    errs = [e for e in validator.descend(instance, {'anyOf': spec['nonobj']})]
                    yield from errs
                    return
                yield ValidationError(f"expected object with '{spec['prop']}', got {json.dumps(instance)[:60]}"); return
            v = instance.get(spec['prop'])
            ref = spec['map'].get(v)
            if ref is None:
                if spec.get('lax'): return
                yield ValidationError(f"unknown {spec['prop']} {v!r}"); return
            yield from validator.descend(instance, ref)
        self.V = validators.extend(V, {'x-disc': disc})
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012
        res = Resource.from_contents({'$schema': 'https://json-schema.org/draft/2020-12/schema', '$id': 'urn:oai', '$defs': self.out}, default_specification=DRAFT202012)
        self.reg = Registry().with_resource('urn:oai', res)
        self.cache = {}
        self.events = {}
        for b in self.src['ResponseStreamEvent'].get('anyOf', []) or self.src['ResponseStreamEvent'].get('oneOf', []):
            c = _consts(self.src, b, 'type')
            for t in c or []: self.events[t] = b['$ref'].split('/')[-1]

    def _t(self, s, name, todo, path=''):
        if isinstance(s, list): return [self._t(x, name, todo, path) for x in s]
        if not isinstance(s, dict): return s
        if '$ref' in s:
            n = s['$ref'].split('/')[-1]; todo.append(n)
            r = {'$ref': f'urn:oai#/$defs/{n}'}
            if s.get('nullable'): return {'anyOf': [r, {'type': 'null'}]}
            return r
        if '$recursiveRef' in s: return {}
        o = {}
        nullable = s.get('nullable') is True
        for k, v in s.items():
            if k in ('nullable', 'discriminator', 'description', 'example', 'examples', 'title', 'default', 'format', 'pattern', 'deprecated', '$recursiveAnchor') or k.startswith('x-'): continue
            if k == 'additionalProperties' and v is False: continue
            if k in ('exclusiveMinimum', 'exclusiveMaximum') and isinstance(v, bool): continue
            if k == 'properties':
                req = set(s.get('required') or [])
                o[k] = {p: (self._t(x, name, todo, path + '/' + p) if p in req else {'anyOf': [self._t(x, name, todo, path + '/' + p), {'type': 'null'}]}) for p, x in v.items()}
            elif k in ('oneOf', 'anyOf'): o['anyOf'] = self._t(v, name, todo, path)
            elif k in ('allOf', 'items', 'additionalProperties', 'not'): o[k] = self._t(v, name, todo, path)
            else: o[k] = v
        key = 'oneOf' if 'oneOf' in s else 'anyOf' if 'anyOf' in s else None
        if key and len(s[key]) > 1:
            prop = (s.get('discriminator') or {}).get('propertyName', 'type')
            m, ok, non = {}, True, []
            for b, tb in zip(s[key], o['anyOf']):
                d = _deref(self.src, b)
                c = _consts(self.src, b, prop)
                if c:
                    for x in c:
                        m.setdefault(x, tb)
                elif isinstance(d, dict) and d.get('type') in ('string', 'null', 'array', 'integer', 'number', 'boolean'): non.append(tb)
                else: ok = False
            if ok and len(m) > 1:
                o.pop('anyOf')
                o['x-disc'] = {'prop': prop, 'map': m, 'nonobj': non, 'lax': name in LAX_UNKNOWN}
        if nullable:
            if 'type' in o and isinstance(o['type'], str):
                o['type'] = [o['type'], 'null']
                if 'enum' in o and None not in o['enum']: o['enum'] = o['enum'] + [None]
            else: o = {'anyOf': [o, {'type': 'null'}]}
        return o

    def _relax(self):
        def unreq(n, *fs):
            s = self.out.get(n)
            if not s: return
            for x in [s] + s.get('allOf', []):
                if isinstance(x, dict) and 'required' in x: x['required'] = [r for r in x['required'] if r not in fs]
        u = self.out.get('ResponseUsage')
        if u: u['properties']['input_tokens_details']['required'] = ['cached_tokens']
        unreq('OutputTextContent', 'logprobs'); unreq('ResponseTextDeltaEvent', 'logprobs'); unreq('ResponseTextDoneEvent', 'logprobs')
        self.out['ResponseErrorCode'] = {'type': 'string', 'minLength': 1}
        unreq('CodeInterpreterTool', 'container'); unreq('MCPListToolsTool', 'annotations', 'description')
        for n in ('MCPToolCall', 'MCPListTools'):
            if n in self.out and 'error' in self.out[n].get('properties', {}): self.out[n]['properties']['error'] = {}

    def errors(self, name, inst, skip=()):
        v = self.cache.get(name)
        if v is None:
            v = self.cache[name] = self.V({'$ref': f'urn:oai#/$defs/{name}'}, registry=self.reg)
        out = []
        def walk(e):
            if e.context:
                ctx = [c for c in e.context if "is not of type 'null'" not in c.message] or e.context
                for c in sorted(ctx, key=lambda c: -len(c.absolute_path))[:1]: walk(c)
                return
            out.append('/'.join(map(str, e.absolute_path)) + ': ' + e.message[:160])
        for e in v.iter_errors(inst): walk(e)
        return [x for x in dict.fromkeys(out) if not any(k in x for k in skip)]

    def event_errors(self, ev):
        t = ev.get('type')
        n = self.events.get(t)
        if n is None: return [f"event type {t!r} is not in the published union"]
        skip = ()
        if t == 'response.output_item.added' and (ev.get('item') or {}).get('type') == 'web_search_call': skip = ("'action' is a required",)
        return [f"{t}: {x}" for x in self.errors(n, ev, skip)]

if __name__ == '__main__':
    if '--relaxed' in sys.argv: print('\n'.join('- ' + r for r in RELAXED)); sys.exit()
    S = Schemas()
    doc = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'schemas', 'openai-openapi.json')))
    for e in doc['paths']['/responses']['post']['x-oaiMeta']['examples']:
        r = e['response']
        if e['title'] == 'Streaming':
            for l in r.splitlines():
                if l.startswith('data: '): print(S.event_errors(json.loads(l[6:]))[:3])
        else:
            try: print(e['title'], S.errors('Response', json.loads(r)))
            except Exception as x: print(e['title'], 'unparsable', str(x)[:80])
    for t, n in S.events.items():
        ex = (S.src[n].get('x-oaiMeta') or {}).get('example')
        if ex:
            try: print(t, S.event_errors(json.loads(ex)))
            except Exception as x: print(t, 'EXC', type(x), str(x)[:100])
