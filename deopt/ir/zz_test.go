package ir
import ("testing";"os";"fmt";"time")
func TestZZ(t *testing.T){
 for _,f:=range os.Args[1:] {
  if f[0]=='-' {continue}
  t0:=time.Now()
  m,err:=ParseFile(f); t1:=time.Since(t0)
  if err==nil {err=m.Check()}
  if err!=nil {fmt.Println("FAIL",f,err); continue}
  fmt.Println("ok",f,t1,time.Since(t0))
 }
}
