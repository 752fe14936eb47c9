package ir
import ("testing";"os";"os/exec";"fmt";"math/rand";"regexp";"strings";"strconv")
func TestZZ(t *testing.T){
 ver:=os.Getenv("V")
 tokens:=regexp.MustCompile(`[-\w.%@$#"!]+|\s+|.`)
 var pool []string
 for _,f:=range strings.Fields(os.Getenv("FILES")) {
 src,_:=os.ReadFile(f)
 toks:=tokens.FindAllString(string(src),-1)
 pool=append(pool,toks...)
 n,_:=strconv.Atoi(os.Getenv("N"))
 seed,_:=strconv.Atoi(os.Getenv("SEED"))
 r:=rand.New(rand.NewSource(int64(seed)))
 for i:=0;i<n;i++ {
  mut:=append([]string(nil),toks...)
  k:=r.Intn(len(mut)); for strings.TrimSpace(mut[k])=="" {k=r.Intn(len(mut))}
  switch r.Intn(4) {
  case 0: mut[k]=""
  case 1: mut[k]=mut[k]+" "+pool[r.Intn(len(pool))]
  case 2: j:=min(max(0,k+r.Intn(40)-20),len(mut)-1); mut[k]=mut[j]
  default: mut[k]=pool[r.Intn(len(pool))]
  }
  s:=strings.Join(mut,"")
  m,err:=Parse("m.ll",[]byte(s)); if err==nil {err=m.Check()}
  os.WriteFile("/tmp/irscratch/m.ll",[]byte(s),0o666)
  args:=[]string{"-disable-verify","-o","/dev/null","/tmp/irscratch/m.ll"}
  if ver=="14" && !strings.Contains(f,"typed") {args=append(args,"-opaque-pointers")}
  out,lerr:=exec.Command("llvm-as-"+ver,args...).CombinedOutput()
  if strings.Contains(string(out),"Stack dump") {continue}
  if (err==nil)!=(lerr==nil) {
    if err!=nil { fmt.Printf("WE REFUSE %d: %v\n",i,err) } else {o:=strings.SplitN(string(out),"\n",4); fmt.Printf("WE TAKE %d: %s\n",i,strings.Join(o[:min(3,len(o))],"\n")) }
  } else if err!=nil {
    w:=err.(*Error)
    if mm:=regexp.MustCompile(`m\.ll:(\d+):(\d+): error: (.*)`).FindStringSubmatch(string(out)); mm!=nil { l,_:=strconv.Atoi(mm[1]); if l!=w.Line {fmt.Printf("LINE %d: %d vs %d: %s | %s\n",i,w.Line,l,w.Msg,mm[3])} }
  }
 }}
}
