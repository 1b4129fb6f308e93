"""RMSNorm of queries and keys over the heads of all ranks."""
import torch
import torch.distributed as dist

EPSILON = 1e-5


def operation(
    qkv: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
) -> None:
    """qkv: [rows, q_dim + 2 * k_dim], q_weight: [q_dim], k_weight: [k_dim]; q and k are written."""
    q_dim, k_dim = q_weight.numel(), k_weight.numel()
    parts = qkv.float().split([q_dim, k_dim, k_dim], dim=1)
    squares = torch.stack([part.square().sum(dim=1) for part in parts[:2]])
    dist.all_reduce(squares, op=dist.ReduceOp.SUM)
    for i, (weight, out) in enumerate(((q_weight, q), (k_weight, k))):
        mean = squares[i] / (dist.get_world_size() * weight.numel())
        out.copy_(weight.float() * parts[i] * torch.rsqrt(mean + EPSILON)[:, None])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    options = {"device": "cuda", "dtype": torch.bfloat16}
    for rows in (4, 48):
        qkv = torch.randint(-8, 9, (rows, 768), device="cuda").bfloat16()
        q, k = torch.empty(rows, 512, **options), torch.empty(rows, 128, **options)
        operation(qkv, torch.rand(512, **options), torch.rand(128, **options), q, k)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
