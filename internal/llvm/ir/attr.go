package ir

import "strings"

// attributeNames lists the attributes of functions, parameters, results and calls in LLVM 14 to 22. The text after another word decides whether it is an
// attribute too: see unknown.go.
var attributeNames = words(`
	align alignstack allocalign allockind allocptr allocsize alwaysinline argmemonly builtin byref byval
	captures cold convergent coro_elide_safe coro_only_destroy_when_complete dead_on_return dead_on_unwind
	dereferenceable dereferenceable_or_null disable_sanitizer_instrumentation elementtype fn_ret_thunk_extern hot
	hybrid_patchable immarg inaccessiblemem_or_argmemonly inaccessiblememonly inalloca initializes inlinehint inreg
	jumptable memory minsize mustprogress naked nest noalias nobuiltin nocallback nocapture nocf_check
	nocreateundeforpoison nodivergencesource noduplicate noext nofpclass nofree noimplicitfloat noinline nomerge
	nonlazybind nonnull nooutline noprofile norecurse noredzone noreturn nosanitize_bounds nosanitize_coverage nosync
	noundef nounwind null_pointer_is_valid optdebug optforfuzzing optnone optsize preallocated presplitcoroutine
	range readnone readonly returned returns_twice safestack sanitize_address sanitize_alloc_token
	sanitize_hwaddress sanitize_memory sanitize_memtag sanitize_numerical_stability sanitize_realtime
	sanitize_realtime_blocking sanitize_thread sanitize_type shadowcallstack signext skipprofile speculatable
	speculative_load_hardening sret ssp sspreq sspstrong strictfp swiftasync swifterror swiftself uwtable
	vscale_range willreturn writable writeonly zeroext`)

// conventions lists the named calling conventions. Numbered ones are written as cc N.
var conventions = words(`
	aarch64_sme_preservemost_from_x0 aarch64_sme_preservemost_from_x1 aarch64_sme_preservemost_from_x2
	aarch64_sve_vector_pcs aarch64_vector_pcs amdgpu_cs amdgpu_cs_chain amdgpu_cs_chain_preserve amdgpu_es
	amdgpu_gfx amdgpu_gfx_whole_wave amdgpu_gs amdgpu_hs amdgpu_kernel amdgpu_ls amdgpu_ps amdgpu_vs anyregcc
	arm_aapcs_vfpcc arm_aapcscc arm_apcscc avr_intrcc avr_signalcc ccc cfguard_checkcc cheriot_compartmentcallcc
	cheriot_compartmentcalleecc cheriot_librarycallcc coldcc cxx_fast_tlscc fastcc ghccc graalcc hhvm_ccc hhvmcc
	intel_ocl_bicc m68k_rtdcc msp430_intrcc preserve_allcc preserve_mostcc preserve_nonecc ptx_device ptx_kernel
	riscv_vector_cc riscv_vls_cc spir_func spir_kernel swiftcc swifttailcc tailcc webkit_jscc win64cc
	x86_64_sysvcc x86_fastcallcc x86_intrcc x86_regcallcc x86_stdcallcc x86_thiscallcc x86_vectorcallcc`)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// attributes holds those attributes of one attribute list that this package uses.
type attributes struct {
	param   ParamAttrs
	element *Type             // elementtype(…)
	strings map[string]string // "key"="value", without those in groups
	groups  []string          // the numbers of attribute groups
	pure    bool              // an attribute states that the function or call stores nothing
	argsMem bool              // accesses only memory that its arguments point to
	naked   bool              // an attribute states that the function has no frame
}

// attrGroup holds those attributes of one attribute group that this package uses.
type attrGroup struct {
	strings map[string]string
	pure    bool
	argsMem bool
	naked   bool
}

// attrParser parses attributes and calling conventions.
type attrParser struct {
	typeParser
}

// parseAttributes reads a list of attributes: words, strings and groups.
func (p *attrParser) parseAttributes(at place) attributes {
	var a attributes
	for p.err == nil {
		switch {
		case p.tok.kind == tokString:
			key := p.str()
			value := ""
			if p.accept('=') {
				value = p.str()
			}
			a.set(key, value)
		case p.tok.kind == tokGroup:
			a.groups = append(a.groups, p.tok.text)
			p.next()
		case p.tok.kind == tokWord && attributeNames[p.tok.text]:
			p.parseAttribute(&a)
		case p.tok.kind == tokWord && p.skipUnknownAttribute(at):
		default:
			return a
		}
	}
	return a
}

// sharedAttrs returns the module's shared copy of a.
func (m *Module) sharedAttrs(a ParamAttrs) *ParamAttrs {
	if known := m.attrs[a]; known != nil {
		return known
	}
	made := new(ParamAttrs) // allocate only here: taking &a would move every argument to the heap
	*made = a
	m.attrs[a] = made
	return made
}

func (a *attributes) set(key, value string) {
	if a.strings == nil {
		a.strings = map[string]string{}
	}
	a.strings[key] = value
}

// stringsOf returns the string attributes of a call, including those of its groups. A group may be defined after its use, but bodies are parsed after the
// rest of the module. An undefined group is empty, as in LLVM.
func (p *attrParser) stringsOf(a attributes) map[string]string {
	for _, group := range a.groups {
		if g := p.m.attrGroups[group]; g != nil {
			for key, value := range g.strings {
				a.set(key, value)
			}
		}
	}
	return a.strings
}

func (p *attrParser) parseAttribute(a *attributes) {
	word := p.tok.text
	p.next()
	switch word {
	case "signext":
		a.param.SignExt = true
	case "swifterror":
		a.param.SwiftError, a.param.Apart = true, true
	case "readnone", "readonly":
		a.pure = true
	case "argmemonly":
		a.argsMem = true
	case "naked":
		a.naked = true
	case "memory":
		if p.isPunct('(') {
			effects := p.skipBalanced()
			a.pure, a.argsMem = !strings.Contains(effects, "write"), onlyArguments(effects)
		}
	case "nest", "inreg", "swiftself", "swiftasync":
		a.param.Apart = true
	case "align":
		// The form is "align 8" or "align(8)" for a parameter, and "align=8" in a group.
		switch {
		case p.accept('('):
			a.param.Align = p.alignment()
			p.expect(')', "after alignment")
		default:
			p.accept('=')
			a.param.Align = p.alignment()
		}
	case "byval":
		a.param.ByVal = p.attributeType()
	case "sret":
		a.param.SRet = p.attributeType()
	case "inalloca":
		a.param.InAlloca = p.attributeType()
	case "preallocated":
		a.param.Preallocated = p.attributeType()
	case "elementtype":
		a.element = p.attributeType()
	case "dereferenceable":
		a.param.Dereferenceable = p.attributeBytes()
	default:
		switch {
		case p.isPunct('('):
			p.skipBalanced()
		case p.accept('='):
			p.uint(1 << 32)
		}
	}
}

// onlyArguments reports whether the effects in memory(…) allow accesses only to memory that arguments point to.
func onlyArguments(effects string) bool {
	for effect := range strings.SplitSeq(strings.Trim(effects, "()"), ",") {
		where, what, named := strings.Cut(strings.TrimSpace(effect), ":")
		if !named {
			where, what = "", where
		}
		if strings.TrimSpace(where) != "argmem" && strings.TrimSpace(what) != "none" {
			return false
		}
	}
	return true
}

// attributeBytes reads (8), or =8 as in a group.
func (p *attrParser) attributeBytes() uint64 {
	if p.accept('=') {
		return p.uint(1<<64 - 1)
	}
	p.expect('(', "before a number of bytes")
	n := p.uint(1<<64 - 1)
	p.expect(')', "after a number of bytes")
	return n
}

// attributeType reads (T) after an attribute.
func (p *attrParser) attributeType() *Type {
	p.expect('(', "before the type of an attribute")
	t := p.parseType()
	p.expect(')', "after the type of an attribute")
	return t
}

// optConvention reads a calling convention if one is next. "ccc" is the C convention, which is the default.
func (p *attrParser) optConvention() (string, bool) {
	if p.tok.kind != tokWord {
		return "", false
	}
	word := p.tok.text
	switch {
	case word == "cc":
		p.next()
		n := p.tok.text
		p.uint(1023)
		return "cc " + n, true
	case conventions[word]:
		p.next()
		if word == "riscv_vls_cc" && p.isPunct('(') {
			word += p.skipBalanced()
		}
		if word == "ccc" {
			word = ""
		}
		return word, true
	case attributeNames[word]:
		return "", false
	}
	// An unknown word in the position of a calling convention may be one.
	before := p.tok
	if _, other := p.ahead(func(word string) bool { return word == "cc" || conventions[word] }); other {
		if p.skipUnknown("flag", p.typeAhead) {
			return p.optConvention()
		}
	} else if p.skipUnknown(convention, p.typeAhead) {
		return p.src[before.pos : before.pos+len(before.text)], true
	}
	return "", false
}
