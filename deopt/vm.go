package deopt

import "reframe/deopt/vmlayout"

// fillVM reads the frames of the user's virtual machine out of the slots of the record.
func (f *Frame) fillVM() {
	m := f.match
	if len(f.view.vms) == 0 {
		return
	}
	if m.read == nil { // it is the same at each exit
		if known := m.Site != nil || m.agreements() != nil || m.counted(); known {
			site := vmlayout.OfRecord(m.Site, m.Sites, m.Entry, m.recorded())
			site.Function, site.Record, site.Kind = f.Function, f.Record.ID, f.Record.Site
			m.read = vmlayout.First(f.view.vms, site)
		} else {
			m.read = vmlayout.Uncounted(f.view.vms, f.Record.ID)
		}
	}
	f.view.source.Slots = f.Slots
	f.VM = m.read.Read(f.view.source)
}
