// llvmpipe, by OSMesa: a fragment shader that takes long for each pixel, drawn over and over.
#include <GL/osmesa.h>
#include <stdio.h>
#include <stdlib.h>

static const char *vertex = "#version 120\nvoid main() { gl_Position = gl_Vertex; }\n";
static const char *fragment = "#version 120\nvoid main() {\n  vec4 c = gl_FragCoord;\n"
                              "  for (int i = 0; i < 100000; i++) c = sin(c * 1.01 + vec4(float(i)));\n  gl_FragColor = c;\n}\n";

#define GET(type, name) type name = (type)OSMesaGetProcAddress(#name)

int main(void) {
  enum { size = 512 };
  OSMesaContext context = OSMesaCreateContextExt(OSMESA_RGBA, 24, 0, 0, NULL);
  if (!context || !OSMesaMakeCurrent(context, malloc(size * size * 4), GL_UNSIGNED_BYTE, size, size)) return 1;
  GET(PFNGLCREATESHADERPROC, glCreateShader);
  GET(PFNGLSHADERSOURCEPROC, glShaderSource);
  GET(PFNGLCOMPILESHADERPROC, glCompileShader);
  GET(PFNGLCREATEPROGRAMPROC, glCreateProgram);
  GET(PFNGLATTACHSHADERPROC, glAttachShader);
  GET(PFNGLLINKPROGRAMPROC, glLinkProgram);
  GET(PFNGLUSEPROGRAMPROC, glUseProgram);
  GLuint program = glCreateProgram();
  for (int k = 0; k < 2; k++) {
    GLuint s = glCreateShader(k ? GL_FRAGMENT_SHADER : GL_VERTEX_SHADER);
    glShaderSource(s, 1, k ? &fragment : &vertex, NULL);
    glCompileShader(s);
    glAttachShader(program, s);
  }
  glLinkProgram(program);
  glUseProgram(program);
  printf("%s\nready\n", glGetString(GL_RENDERER));
  fflush(stdout);
  for (;;) {
    glBegin(GL_TRIANGLES);
    glVertex2f(-1, -1);
    glVertex2f(3, -1);
    glVertex2f(-1, 3);
    glEnd();
    glFinish();
  }
}
