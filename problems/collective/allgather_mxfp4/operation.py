"""All-gather of MXFP4 shards (e2m1 codes, one e8m0 exponent per 32), unpacked to bf16."""
import torch
import torch.distributed as dist


def operation(codes: torch.Tensor, exponents: torch.Tensor, out: torch.Tensor) -> None:
    """codes: [n / 2] uint8; exponents: [ceil(n / 32)] uint8; out: [world, n] bf16."""
    world, n = out.shape
    all_codes = torch.empty(world, n // 2, dtype=torch.uint8, device=out.device)
    all_exponents = torch.empty(world, exponents.numel(), dtype=torch.uint8, device=out.device)
    dist.all_gather_into_tensor(all_codes.view(-1), codes)
    dist.all_gather_into_tensor(all_exponents.view(-1), exponents)
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table = torch.tensor(magnitudes + [-m for m in magnitudes], dtype=torch.float64,
                         device=out.device)
    nibbles = torch.stack((all_codes & 15, all_codes >> 4), dim=2).view(world, n).long()
    scale = torch.exp2(all_exponents.double() - 127).repeat_interleave(32, dim=1)[:, :n]
    out.copy_(table[nibbles] * scale)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n in (1024, 16384):
        codes = torch.randint(0, 256, (n // 2,), dtype=torch.uint8, device="cuda")
        exponents = torch.randint(0, 253, (n // 32,), dtype=torch.uint8, device="cuda")
        operation(codes, exponents, torch.empty(world, n, dtype=torch.bfloat16, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
