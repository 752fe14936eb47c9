// pocl: a kernel that does not end.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source = "__kernel void spin(__global float *v, int n) {\n  int g = get_global_id(0);\n  float x = v[g];\n"
                            "  while (n) x = x * 1.0001f + sin(x);\n  v[g] = x;\n}\n";

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)) return 1;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  if (clBuildProgram(program, 1, &device, "", NULL, NULL)) return 2;
  cl_kernel kernel = clCreateKernel(program, "spin", NULL);
  size_t global = 1 << 16;
  cl_int n = 1;
  cl_mem v = clCreateBuffer(context, CL_MEM_READ_WRITE, global * sizeof(float), NULL, NULL);
  clSetKernelArg(kernel, 0, sizeof v, &v);
  clSetKernelArg(kernel, 1, sizeof n, &n);
  if (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL) || clFlush(queue)) return 3;
  printf("ready\n");
  fflush(stdout);
  clFinish(queue);
}
