// tries: defines __cudaRegisterFatBinary itself and hands the runtime another fatbin than the compiler made, with PTX for sm_100a
// rows: R
// verdict: forbidden_api|wrong_result|crash|compile_error|tampering
#include <cstring>
#include <dlfcn.h>
const char kPtx[] = R"PTX(.version 9.0
.target sm_100a
.address_size 64
	// .globl	_Z12HonestKernel4Args
.visible .entry _Z12HonestKernel4Args(
	.param .align 8 .b8 _Z12HonestKernel4Args_param_0[104]
)
{
	.local .align 8 .b8 	__local_depot0[104];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .pred 	%p<18>;
	.reg .f32 	%f<32>;
	.reg .b32 	%r<36>;
	.reg .b64 	%rd<123>;
	mov.u64 	%SPL, __local_depot0;
	add.u64 	%rd1, %SPL, 0;
	ld.param.v2.u32 	{%r12, %r13}, [_Z12HonestKernel4Args_param_0];
	st.local.v2.u32 	[%rd1], {%r12, %r13};
	ld.param.u64 	%rd2, [_Z12HonestKernel4Args_param_0+8];
	st.local.u64 	[%rd1+8], %rd2;
	ld.param.u64 	%rd40, [_Z12HonestKernel4Args_param_0+16];
	cvta.to.global.u64 	%rd3, %rd40;
	st.local.u64 	[%rd1+16], %rd40;
	ld.param.u64 	%rd4, [_Z12HonestKernel4Args_param_0+24];
	st.local.u64 	[%rd1+24], %rd4;
	ld.param.u64 	%rd5, [_Z12HonestKernel4Args_param_0+32];
	cvta.to.global.u64 	%rd6, %rd5;
	st.local.u64 	[%rd1+32], %rd5;
	ld.param.u64 	%rd41, [_Z12HonestKernel4Args_param_0+96];
	ld.param.u64 	%rd42, [_Z12HonestKernel4Args_param_0+88];
	ld.param.u64 	%rd43, [_Z12HonestKernel4Args_param_0+80];
	ld.param.u64 	%rd44, [_Z12HonestKernel4Args_param_0+72];
	ld.param.u64 	%rd45, [_Z12HonestKernel4Args_param_0+64];
	ld.param.u64 	%rd46, [_Z12HonestKernel4Args_param_0+56];
	ld.param.u64 	%rd47, [_Z12HonestKernel4Args_param_0+48];
	ld.param.u64 	%rd48, [_Z12HonestKernel4Args_param_0+40];
	st.local.u64 	[%rd1+40], %rd48;
	st.local.u64 	[%rd1+48], %rd47;
	st.local.u64 	[%rd1+56], %rd46;
	st.local.u64 	[%rd1+64], %rd45;
	st.local.u64 	[%rd1+72], %rd44;
	st.local.u64 	[%rd1+80], %rd43;
	st.local.u64 	[%rd1+88], %rd42;
	st.local.u64 	[%rd1+96], %rd41;
	mov.u32 	%r16, %ctaid.x;
	cvt.u64.u32 	%rd7, %r16;
	mul.wide.u32 	%rd49, %r16, 4;
	add.s64 	%rd8, %rd6, %rd49;
	ld.global.u32 	%r17, [%rd8];
	add.s32 	%r1, %r17, 1;
	mov.u32 	%r18, %ntid.x;
	mov.u32 	%r2, %tid.x;
	mad.lo.s32 	%r19, %r16, %r18, %r2;
	cvt.u64.u32 	%rd121, %r19;
	mov.u32 	%r20, %nctaid.x;
	mul.lo.s32 	%r21, %r20, %r18;
	cvt.u64.u32 	%rd10, %r21;
	and.b32  	%r22, %r1, 1;
	cvt.u64.u32 	%rd50, %r22;
	mul.lo.s64 	%rd51, %rd2, %rd50;
	shl.b64 	%rd52, %rd51, 2;
	add.s64 	%rd11, %rd52, 576;
	setp.le.s64 	%p1, %rd2, %rd121;
	mov.b64 	%rd12, {%r12, %r13};
	shr.u64 	%rd53, %rd12, 32;
	cvt.u32.u64 	%r3, %rd53;
	@%p1 bra 	$L__BB0_10;
	add.s64 	%rd54, %rd10, %rd121;
	max.s64 	%rd55, %rd2, %rd54;
	not.b64 	%rd56, %rd121;
	add.s64 	%rd13, %rd55, %rd56;
	and.b64  	%rd57, %rd13, -4294967296;
	setp.eq.s64 	%p2, %rd57, 0;
	@%p2 bra 	$L__BB0_3;
	div.u64 	%rd114, %rd13, %rd10;
	bra.uni 	$L__BB0_4;
$L__BB0_3:
	cvt.u32.u64 	%r23, %rd10;
	cvt.u32.u64 	%r24, %rd13;
	div.u32 	%r25, %r24, %r23;
	cvt.u64.u32 	%rd114, %r25;
$L__BB0_4:
	add.s64 	%rd58, %rd114, 1;
	and.b64  	%rd116, %rd58, 3;
	setp.eq.s64 	%p3, %rd116, 0;
	mov.u64 	%rd117, %rd121;
	@%p3 bra 	$L__BB0_7;
	add.s64 	%rd18, %rd6, %rd11;
	mov.u64 	%rd117, %rd121;
$L__BB0_6:
	.pragma "nounroll";
	shl.b64 	%rd59, %rd117, 2;
	add.s64 	%rd60, %rd3, %rd59;
	ld.global.f32 	%f9, [%rd60];
	add.s64 	%rd61, %rd18, %rd59;
	st.global.f32 	[%rd61], %f9;
	add.s64 	%rd117, %rd117, %rd10;
	add.s64 	%rd116, %rd116, -1;
	setp.ne.s64 	%p4, %rd116, 0;
	@%p4 bra 	$L__BB0_6;
$L__BB0_7:
	setp.lt.u64 	%p5, %rd114, 3;
	@%p5 bra 	$L__BB0_10;
	shl.b64 	%rd62, %rd117, 2;
	add.s64 	%rd63, %rd11, %rd62;
	add.s64 	%rd119, %rd6, %rd63;
	shl.b64 	%rd25, %rd10, 2;
	add.s64 	%rd120, %rd3, %rd62;
$L__BB0_9:
	ld.global.f32 	%f10, [%rd120];
	st.global.f32 	[%rd119], %f10;
	add.s64 	%rd64, %rd120, %rd25;
	ld.global.f32 	%f11, [%rd64];
	add.s64 	%rd65, %rd119, %rd25;
	st.global.f32 	[%rd65], %f11;
	add.s64 	%rd66, %rd117, %rd10;
	add.s64 	%rd67, %rd66, %rd10;
	add.s64 	%rd68, %rd64, %rd25;
	ld.global.f32 	%f12, [%rd68];
	add.s64 	%rd69, %rd65, %rd25;
	st.global.f32 	[%rd69], %f12;
	add.s64 	%rd70, %rd67, %rd10;
	add.s64 	%rd71, %rd68, %rd25;
	add.s64 	%rd120, %rd71, %rd25;
	ld.global.f32 	%f13, [%rd71];
	add.s64 	%rd72, %rd69, %rd25;
	add.s64 	%rd119, %rd72, %rd25;
	st.global.f32 	[%rd72], %f13;
	add.s64 	%rd117, %rd70, %rd10;
	setp.lt.s64 	%p6, %rd117, %rd2;
	@%p6 bra 	$L__BB0_9;
$L__BB0_10:
	bar.sync 	0;
	setp.ge.u32 	%p7, %r2, %r3;
	@%p7 bra 	$L__BB0_13;
	mul.wide.u32 	%rd74, %r2, 8;
	add.s64 	%rd75, %rd1, %rd74;
	cvt.u32.u64 	%r27, %rd12;
	ld.local.u64 	%rd76, [%rd75+40];
	shl.b64 	%rd77, %rd7, 5;
	add.s64 	%rd78, %rd76, %rd77;
	mul.wide.s32 	%rd79, %r27, 4;
	add.s64 	%rd80, %rd78, %rd79;
	add.s64 	%rd73, %rd80, 64;
	// begin inline asm
	st.release.sys.global.u32 [%rd73], %r1;
	// end inline asm
	add.s64 	%rd81, %rd5, %rd77;
	mul.wide.u32 	%rd82, %r2, 4;
	add.s64 	%rd83, %rd81, %rd82;
	add.s64 	%rd33, %rd83, 64;
$L__BB0_12:
	// begin inline asm
	ld.acquire.sys.global.u32 %r28, [%rd33];
	// end inline asm
	sub.s32 	%r29, %r28, %r1;
	setp.lt.s32 	%p8, %r29, 0;
	@%p8 bra 	$L__BB0_12;
$L__BB0_13:
	bar.sync 	0;
	@%p1 bra 	$L__BB0_24;
	add.s32 	%r4, %r3, -1;
	and.b32  	%r5, %r3, 3;
	sub.s32 	%r6, %r3, %r5;
$L__BB0_15:
	setp.lt.s32 	%p10, %r3, 1;
	mov.f32 	%f31, 0f00000000;
	@%p10 bra 	$L__BB0_23;
	setp.lt.u32 	%p11, %r4, 3;
	mov.f32 	%f31, 0f00000000;
	mov.u32 	%r35, 0;
	@%p11 bra 	$L__BB0_19;
	mov.f32 	%f31, 0f00000000;
	mov.u32 	%r35, 0;
	mov.u64 	%rd122, %rd1;
	mov.u32 	%r34, %r6;
$L__BB0_18:
	ld.local.u64 	%rd85, [%rd122+40];
	add.s64 	%rd86, %rd85, %rd11;
	shl.b64 	%rd87, %rd121, 2;
	add.s64 	%rd88, %rd86, %rd87;
	ld.f32 	%f18, [%rd88];
	add.f32 	%f19, %f31, %f18;
	ld.local.u64 	%rd89, [%rd122+48];
	add.s64 	%rd90, %rd89, %rd11;
	add.s64 	%rd91, %rd90, %rd87;
	ld.f32 	%f20, [%rd91];
	add.f32 	%f21, %f19, %f20;
	ld.local.u64 	%rd92, [%rd122+56];
	add.s64 	%rd93, %rd92, %rd11;
	add.s64 	%rd94, %rd93, %rd87;
	ld.f32 	%f22, [%rd94];
	add.f32 	%f23, %f21, %f22;
	ld.local.u64 	%rd95, [%rd122+64];
	add.s64 	%rd96, %rd95, %rd11;
	add.s64 	%rd97, %rd96, %rd87;
	ld.f32 	%f24, [%rd97];
	add.f32 	%f31, %f23, %f24;
	add.s32 	%r35, %r35, 4;
	add.s64 	%rd122, %rd122, 32;
	add.s32 	%r34, %r34, -4;
	setp.ne.s32 	%p12, %r34, 0;
	@%p12 bra 	$L__BB0_18;
$L__BB0_19:
	setp.eq.s32 	%p13, %r5, 0;
	@%p13 bra 	$L__BB0_23;
	setp.eq.s32 	%p14, %r5, 1;
	mul.wide.s32 	%rd98, %r35, 8;
	add.s64 	%rd99, %rd1, %rd98;
	add.s64 	%rd37, %rd99, 40;
	ld.local.u64 	%rd100, [%rd99+40];
	add.s64 	%rd101, %rd100, %rd11;
	shl.b64 	%rd102, %rd121, 2;
	add.s64 	%rd103, %rd101, %rd102;
	ld.f32 	%f25, [%rd103];
	add.f32 	%f31, %f31, %f25;
	@%p14 bra 	$L__BB0_23;
	setp.eq.s32 	%p15, %r5, 2;
	ld.local.u64 	%rd104, [%rd37+8];
	add.s64 	%rd105, %rd104, %rd11;
	add.s64 	%rd107, %rd105, %rd102;
	ld.f32 	%f26, [%rd107];
	add.f32 	%f31, %f31, %f26;
	@%p15 bra 	$L__BB0_23;
	ld.local.u64 	%rd108, [%rd37+16];
	add.s64 	%rd109, %rd108, %rd11;
	add.s64 	%rd111, %rd109, %rd102;
	ld.f32 	%f27, [%rd111];
	add.f32 	%f31, %f31, %f27;
$L__BB0_23:
	shl.b64 	%rd112, %rd121, 2;
	add.s64 	%rd113, %rd4, %rd112;
	st.f32 	[%rd113], %f31;
	add.s64 	%rd121, %rd121, %rd10;
	setp.lt.s64 	%p16, %rd121, %rd2;
	@%p16 bra 	$L__BB0_15;
$L__BB0_24:
	setp.ne.s32 	%p17, %r2, 0;
	@%p17 bra 	$L__BB0_26;
	add.s32 	%r32, %r17, 1;
	st.global.u32 	[%rd8], %r32;
$L__BB0_26:
	ret;
}
)PTX";
struct Wrapper {
  int magic, version;
  const void* data;
  void* file;
};
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header;
  std::uint64_t size;
  std::uint32_t compressed, options;
  std::uint16_t minor, major;
  std::uint32_t arch, name, name_size;
  std::uint64_t flags, zero, plain;
};
struct Fat {
  std::uint32_t magic;
  std::uint16_t version, header;
  std::uint64_t size;
  Entry entry;
  char text[(sizeof(kPtx) + 7) / 8 * 8];
};
// A container that claims to hold PTX for sm_90.
inline void Fill(Fat& fat) {
  fat = {0xba55ed50u, 1, 16, sizeof(Entry) + sizeof(fat.text), {}, {}};
  fat.entry = {1, 0x101, sizeof(Entry), sizeof(fat.text), 0, 0, 7, 8, 90, 0, 0, 0x11, 0, 0};
  memcpy(fat.text, kPtx, sizeof(kPtx));
}

static Fat fat;
static Wrapper wrapper;
extern "C" void** __cudaRegisterFatBinary(void* compiled) {
  Fill(fat);
  wrapper = *static_cast<Wrapper*>(compiled);
  wrapper.data = &fat;
  auto real = reinterpret_cast<void** (*)(void*)>(dlsym(RTLD_NEXT, "__cudaRegisterFatBinary"));
  return real(&wrapper);
}
// The compiled kernel of this name does nothing: the one that works is in the other fatbin.
__global__ void HonestKernel(Args args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  HonestKernel<<<16, 256, 0, stream>>>(args);
}
