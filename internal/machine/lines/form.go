package lines

import (
	"debug/dwarf"
	"fmt"
)

// These are the forms of attribute values (DWARF 5, 7.5.6; GNU's are in "DWARF Extensions" of the GCC wiki).
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// formSizes holds the sizes that vary by unit.
type formSizes struct {
	addr    int // bytes of an address
	offset  int // bytes of an offset in a section
	refAddr int // bytes of DW_FORM_ref_addr, which in DWARF 2 is an address
}

// of returns the size of a value in bytes, or -1 if it depends on the value.
func (s formSizes) of(form uint32) int {
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return s.addr
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return s.offset
	case formRefAddr:
		return s.refAddr
	}
	return -1
}

// value is the undecoded value of one attribute.
type value struct {
	form uint32
	u    uint64 // the number, offset or index; for a string in the entry itself, its offset in the section
}

func (v value) present() bool { return v.form != 0 }

// skipValue skips a value.
func (b *buf) skipValue(form uint32, sizes formSizes) {
	if n := sizes.of(form); n >= 0 {
		b.skip(uint64(n))
		return
	}
	switch form {
	case formString:
		b.skipString()
	case formBlock1:
		b.skip(b.uint(1))
	case formBlock2:
		b.skip(b.uint(2))
	case formBlock4:
		b.skip(b.uint(4))
	case formBlock, formExprloc:
		b.skip(b.uleb())
	case formUdata, formSdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		b.uleb()
	case formIndirect:
		b.skipValue(b.indirect(), sizes)
	default:
		b.fail(fmt.Errorf("unknown form %#x", form))
	}
}

// indirect reads the form that precedes a value (DW_FORM_indirect). It rejects a second indirect form, because a chain of them could be endless.
func (b *buf) indirect() uint32 {
	form := b.uleb()
	if form == formIndirect || form == formImplicitConst || form > 0xffff {
		b.fail(fmt.Errorf("DW_FORM_indirect gives the form %#x, which is not allowed", form))
		return formFlagPresent
	}
	return uint32(form)
}

// value reads the value of an attribute. For a block it returns only the position.
func (b *buf) value(a attr, sizes formSizes) value {
	form := a.form
	if form == formIndirect {
		form = b.indirect()
	}
	v := value{form: form}
	switch n := sizes.of(form); {
	case form == formImplicitConst:
		v.u = uint64(a.implicit)
	case form == formFlagPresent:
		v.u = 1
	case form == formData16:
		b.skip(16)
	case n > 0:
		v.u = b.uint(n)
	case form == formSdata:
		v.u = uint64(b.sleb())
	case form == formString:
		v.u = b.base + uint64(b.pos)
		b.skipString()
	case form == formBlock1, form == formBlock2, form == formBlock4, form == formBlock, form == formExprloc:
		b.skipValue(form, sizes)
	case form == formUdata, form == formRefUdata, form == formStrx, form == formAddrx, form == formLoclistx, form == formRnglistx,
		form == formGNUAddrIndex, form == formGNUStrIndex:
		v.u = b.uleb()
	default:
		b.fail(fmt.Errorf("unknown form %#x", form))
	}
	return v
}

// These are the attributes and tags that this package uses (DWARF 5, 7.5.3 and 7.5.4).
const (
	attrSibling        = uint32(dwarf.AttrSibling)
	attrName           = uint32(dwarf.AttrName)
	attrStmtList       = uint32(dwarf.AttrStmtList)
	attrLowpc          = uint32(dwarf.AttrLowpc)
	attrHighpc         = uint32(dwarf.AttrHighpc)
	attrCompDir        = uint32(dwarf.AttrCompDir)
	attrOrigin         = uint32(dwarf.AttrAbstractOrigin)
	attrSpecification  = uint32(dwarf.AttrSpecification)
	attrRanges         = uint32(dwarf.AttrRanges)
	attrCallColumn     = uint32(dwarf.AttrCallColumn)
	attrCallFile       = uint32(dwarf.AttrCallFile)
	attrCallLine       = uint32(dwarf.AttrCallLine)
	attrLinkageName    = uint32(dwarf.AttrLinkageName)
	attrStrOffsetsBase = uint32(dwarf.AttrStrOffsetsBase)
	attrAddrBase       = uint32(dwarf.AttrAddrBase)
	attrRnglistsBase   = uint32(dwarf.AttrRnglistsBase)
	attrDwoName        = uint32(dwarf.AttrDwoName)
	attrGNUDwoName     = 0x2130
	attrMIPSLinkage    = 0x2007 // DW_AT_linkage_name before DWARF 4

	tagSubprogram   = uint32(dwarf.TagSubprogram)
	tagInlined      = uint32(dwarf.TagInlinedSubroutine)
	tagLexicalBlock = uint32(dwarf.TagLexDwarfBlock)
	tagTryBlock     = uint32(dwarf.TagTryDwarfBlock)
	tagCatchBlock   = uint32(dwarf.TagCatchDwarfBlock)
	tagWithStmt     = uint32(dwarf.TagWithStmt)
)
